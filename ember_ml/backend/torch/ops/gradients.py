"""Control of gradient flow."""


def alias(x):
    return x.view_as(x)


def stop_gradient(x):
    return x.detach()
