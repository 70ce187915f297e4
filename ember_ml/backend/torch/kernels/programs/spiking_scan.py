"""Programs of the scan of spiking neurons, which loop over time with the states in registers.

Arrays of all steps are (time, lanes), where lane l is neuron l % neurons of example l // neurons.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ember_ml.backend.torch.kernels.programs.builds import Build


@triton.jit
def _reset(voltage, theta, z, RESET: tl.constexpr):
    """Return the voltage after a step."""
    if RESET == "soft":
        return voltage - theta * z
    if RESET == "hard":
        return voltage * (1.0 - z)
    return voltage


@triton.jit
def _slope(u, slope, SURROGATE: tl.constexpr):
    """Return the surrogate derivative of a spike."""
    distance = tl.abs(u)
    if SURROGATE == "fast_sigmoid":
        root = 1.0 / (1.0 + slope * distance)
        return root * root
    if SURROGATE == "atan":
        scaled = 1.5707963267948966 * slope * u
        return 0.5 * slope / (1.0 + scaled * scaled)
    if SURROGATE == "sigmoid":
        decay = tl.exp(-slope * distance)
        return slope * decay / ((1.0 + decay) * (1.0 + decay))
    if SURROGATE == "triangle":
        return tl.where(distance < 1.0, slope * (1.0 - distance), 0.0)
    return slope + 0.0 * u


@triton.jit
def scan(
    x_ptr,
    state_ptr,
    beta_ptr,
    threshold_ptr,
    alpha_ptr,
    rho_ptr,
    strength_ptr,
    mask_ptr,
    z_ptr,
    voltage_ptr,
    last_ptr,
    current_ptr,
    adaptation_ptr,
    active_ptr,
    lanes,
    length,
    neurons,
    rows,
    refractory,
    x_batch,
    x_time,
    x_neuron,
    RESET: tl.constexpr,
    HAS_ALPHA: tl.constexpr,
    HAS_RHO: tl.constexpr,
    HAS_MASK: tl.constexpr,
    RESTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write spikes, voltages, the last state and the arrays for the backward pass."""
    lane = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < lanes
    example, neuron = lane // neurons, lane % neurons
    beta = tl.load(beta_ptr + neuron, inside, 0.0)
    threshold = tl.load(threshold_ptr + neuron, inside, 0.0)
    at = example * rows * neurons + neuron
    v = tl.load(state_ptr + at, inside, 0.0)
    row = 1
    current = v
    alpha = v
    if HAS_ALPHA:
        alpha = tl.load(alpha_ptr + neuron, inside, 0.0)
        current = tl.load(state_ptr + at + row * neurons, inside, 0.0)
        row += 1
    adaptation = v
    rho = v
    strength = v
    if HAS_RHO:
        rho = tl.load(rho_ptr + neuron, inside, 0.0)
        strength = tl.load(strength_ptr + neuron, inside, 0.0)
        adaptation = tl.load(state_ptr + at + row * neurons, inside, 0.0)
        row += 1
    resting = v
    if RESTS:
        resting = tl.load(state_ptr + at + row * neurons, inside, 0.0)
    x_ptr += example * x_batch + neuron * x_neuron
    wide = tl.full([], 0, tl.int64)
    for step in range(length):
        t = wide + step
        place = t * lanes + lane
        drive = tl.load(x_ptr + t * x_time, inside, 0.0)
        real = inside
        if HAS_MASK:
            real = tl.load(mask_ptr + example * length + t, inside, 0).to(tl.int1)
        if HAS_ALPHA:
            tl.store(current_ptr + place, current, inside)
            current = tl.where(real, alpha * current + drive, current)
            drive = current
        active = real
        if RESTS:
            active = active & (resting <= 0.0)
        if HAS_MASK or RESTS:
            tl.store(active_ptr + place, active.to(tl.int8), inside)
        voltage = tl.where(active, beta * v + drive, v)
        theta = threshold
        if HAS_RHO:
            tl.store(adaptation_ptr + place, adaptation, inside)
            theta = threshold + strength * adaptation
        z = tl.where(active & (voltage > theta), 1.0, 0.0)
        tl.store(z_ptr + place, z, inside)
        tl.store(voltage_ptr + place, voltage, inside)
        v = _reset(voltage, theta, z, RESET)
        if HAS_RHO:
            adaptation = tl.where(real, rho * adaptation + z, adaptation)
        if RESTS:
            left = tl.maximum(resting - 1.0, 0.0) + refractory * z
            resting = tl.where(real, left, resting)
    tl.store(last_ptr + at, v, inside)
    row = 1
    if HAS_ALPHA:
        tl.store(last_ptr + at + row * neurons, current, inside)
        row += 1
    if HAS_RHO:
        tl.store(last_ptr + at + row * neurons, adaptation, inside)
        row += 1
    if RESTS:
        tl.store(last_ptr + at + row * neurons, resting, inside)


@triton.jit
def gradients(
    state_ptr,
    beta_ptr,
    threshold_ptr,
    alpha_ptr,
    rho_ptr,
    strength_ptr,
    mask_ptr,
    voltage_ptr,
    current_ptr,
    adaptation_ptr,
    active_ptr,
    g_z_ptr,
    g_voltage_ptr,
    g_last_ptr,
    grad_x_ptr,
    grad_state_ptr,
    grad_beta_ptr,
    grad_threshold_ptr,
    grad_alpha_ptr,
    grad_rho_ptr,
    grad_strength_ptr,
    lanes,
    length,
    neurons,
    rows,
    slope,
    RESET: tl.constexpr,
    SURROGATE: tl.constexpr,
    HAS_ALPHA: tl.constexpr,
    HAS_RHO: tl.constexpr,
    HAS_MASK: tl.constexpr,
    RESTS: tl.constexpr,
    HAS_G_Z: tl.constexpr,
    HAS_G_VOLTAGE: tl.constexpr,
    HAS_G_LAST: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Write the gradients of x, of the state, and of the parameters of each lane."""
    lane = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < lanes
    example, neuron = lane // neurons, lane % neurons
    beta = tl.load(beta_ptr + neuron, inside, 0.0)
    threshold = tl.load(threshold_ptr + neuron, inside, 0.0)
    at = example * rows * neurons + neuron
    first = tl.load(state_ptr + at, inside, 0.0)
    zero = tl.zeros([BLOCK], tl.float32)
    g_v = zero
    g_current = zero
    g_adaptation = zero
    if HAS_G_LAST:
        g_v = tl.load(g_last_ptr + at, inside, 0.0)
    alpha = zero
    if HAS_ALPHA:
        alpha = tl.load(alpha_ptr + neuron, inside, 0.0)
        if HAS_G_LAST:
            g_current = tl.load(g_last_ptr + at + neurons, inside, 0.0)
    rho = zero
    strength = zero
    if HAS_RHO:
        rho = tl.load(rho_ptr + neuron, inside, 0.0)
        strength = tl.load(strength_ptr + neuron, inside, 0.0)
        if HAS_G_LAST:
            g_adaptation = tl.load(g_last_ptr + at + (1 + HAS_ALPHA) * neurons, inside, 0.0)
    sum_beta = zero
    sum_threshold = zero
    sum_alpha = zero
    sum_rho = zero
    sum_strength = zero
    wide = tl.full([], 0, tl.int64)
    for step in range(length):
        t = wide + length - 1 - step
        place = t * lanes + lane
        voltage = tl.load(voltage_ptr + place, inside, 0.0)
        real = inside
        if HAS_MASK:
            real = tl.load(mask_ptr + example * length + t, inside, 0).to(tl.int1)
        active = inside
        if HAS_MASK or RESTS:
            active = tl.load(active_ptr + place, inside, 0).to(tl.int1)
        theta = threshold
        adaptation = zero
        if HAS_RHO:
            adaptation = tl.load(adaptation_ptr + place, inside, 0.0)
            theta = threshold + strength * adaptation
        u = voltage - theta
        z = tl.where(active & (u > 0.0), 1.0, 0.0)
        g_z = zero
        if HAS_G_Z:
            g_z = tl.load(g_z_ptr + place, inside, 0.0)
        if HAS_RHO:
            g_z += tl.where(real, g_adaptation, 0.0)
        g_u = tl.where(active & (tl.abs(u) < float("inf")), g_z * _slope(u, slope, SURROGATE), 0.0)
        g_theta = -g_u
        g = g_u
        if RESET == "soft":
            g_theta -= g_v * z
            g += g_v
        elif RESET == "hard":
            g += g_v * (1.0 - z)
        else:
            g += g_v
        if HAS_G_VOLTAGE:
            g += tl.load(g_voltage_ptr + place, inside, 0.0)
        sum_threshold += g_theta
        drive = tl.where(active, g, 0.0)
        # the voltage before this step, after the reset of the last one
        earlier = inside & (t > 0)
        before = tl.load(voltage_ptr + place - lanes, earlier, 0.0)
        theta_before = threshold
        if HAS_RHO:
            theta_before += strength * tl.load(adaptation_ptr + place - lanes, earlier, 0.0)
        fired = before > theta_before
        if HAS_MASK or RESTS:
            fired = fired & tl.load(active_ptr + place - lanes, earlier, 0).to(tl.int1)
        before = _reset(before, theta_before, tl.where(fired, 1.0, 0.0), RESET)
        sum_beta += drive * tl.where(t > 0, before, first)
        g_v = tl.where(active, beta * g, g)
        if HAS_RHO:
            sum_strength += g_theta * adaptation
            sum_rho += tl.where(real, g_adaptation * adaptation, 0.0)
            g_adaptation = tl.where(real, rho * g_adaptation, g_adaptation) + g_theta * strength
        if HAS_ALPHA:
            total = g_current + drive
            drive = tl.where(real, total, 0.0)
            sum_alpha += drive * tl.load(current_ptr + place, inside, 0.0)
            g_current = tl.where(real, alpha * total, total)
        tl.store(grad_x_ptr + place, drive, inside)
    tl.store(grad_state_ptr + at, g_v, inside)
    tl.store(grad_beta_ptr + lane, sum_beta, inside)
    tl.store(grad_threshold_ptr + lane, sum_threshold, inside)
    if HAS_ALPHA:
        tl.store(grad_state_ptr + at + neurons, g_current, inside)
        tl.store(grad_alpha_ptr + lane, sum_alpha, inside)
    if HAS_RHO:
        tl.store(grad_state_ptr + at + (1 + HAS_ALPHA) * neurons, g_adaptation, inside)
        tl.store(grad_rho_ptr + lane, sum_rho, inside)
        tl.store(grad_strength_ptr + lane, sum_strength, inside)
    if RESTS:
        tl.store(grad_state_ptr + at + (rows - 1) * neurons, zero, inside)


_FLAGS = {"RESET": "soft", "HAS_ALPHA": True, "HAS_RHO": True, "HAS_MASK": True, "RESTS": True}
_GIVEN = {"SURROGATE": "atan", "HAS_G_Z": True, "HAS_G_VOLTAGE": True, "HAS_G_LAST": True}
_BYTES = {"mask_ptr": "*i1", "active_ptr": "*i8"}
BUILDS = [
    Build(scan, {**_FLAGS, "BLOCK": 128}, {**_BYTES, "refractory": "fp32"}),
    Build(gradients, {**_FLAGS, **_GIVEN, "BLOCK": 128}, {**_BYTES, "slope": "fp32"}),
]
