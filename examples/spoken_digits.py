"""Spoken digits: classify synthesized words with a mel front end, with and without augmentation.

    python examples/spoken_digits.py [--backend torch] [--layers PATTERN] [--epochs 10] [--quick]
    python examples/spoken_digits.py --data FOLDER     # recordings in a folder for each class

Without recordings, a formant synthesizer speaks the ten digits with random voices and writes them
as WAV files. The test set has other speakers. The script trains the same model twice, with and
without augmentation, prints the accuracy at several levels of noise, and shows that a stream of
20 ms chunks has the same features as the whole recording. Files are written to runs/spoken_digits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import ember_ml as ember
from ember_ml import nn, ops
from ember_ml.data import DataLoader, Dataset, audio, random_split
from ember_ml.nn import features
from ember_ml.training import Trainer

RATE = 8000
SECONDS = 0.8
NOISE = (40.0, 30.0, 20.0, 10.0, 5.0, 0.0)
"""Signal-to-noise ratios in dB of the test."""
AUGMENTATION = audio.Compose(
    [audio.Gain((-12.0, 6.0)), audio.TimeShift(0.15), audio.AddNoise((0.0, 30.0))]
)
VOICED = {  # three formants in Hz, and the loudness
    "i": (270, 2290, 3010, 1.0),
    "I": (390, 1990, 2550, 1.0),
    "e": (530, 1840, 2480, 1.0),
    "a": (730, 1090, 2440, 1.0),
    "A": (640, 1190, 2390, 1.0),
    "o": (570, 840, 2410, 1.0),
    "u": (300, 870, 2240, 0.8),
    "@": (500, 1500, 2500, 0.7),
    "r": (420, 1300, 1600, 0.6),
    "w": (290, 610, 2150, 0.5),
    "n": (250, 1500, 2600, 0.3),
    "v": (280, 1100, 2300, 0.2),
    "z": (280, 1700, 2500, 0.2),
}
HISSES = {  # center and width of the noise in Hz, and the loudness
    "s": (3500, 500, 0.3),
    "z": (3500, 500, 0.15),
    "f": (2200, 1500, 0.1),
    "v": (2200, 1500, 0.05),
    "T": (2800, 1200, 0.08),
    "t": (3300, 700, 0.3),
    "k": (1900, 400, 0.3),
}
STOPS = "tk"
WORDS = {
    "0": "zIrou",
    "1": "wAn",
    "2": "tu",
    "3": "Tri",
    "4": "for",
    "5": "faIv",
    "6": "sIks",
    "7": "sev@n",
    "8": "eIt",
    "9": "naIn",
}


def speak(word: str, rng: np.random.Generator, pitch: float, size: float) -> np.ndarray:
    """Return the samples of a word.

    Args:
        word: Sounds of the word.
        rng: Source of all randomness.
        pitch: Pitch of the voice in Hz.
        size: Factor of all formants: above 1 for a small speaker.
    """
    lengths = (rng.uniform(0.07, 0.13, len(word)) * RATE).astype(int)
    tracks = np.array([VOICED.get(sound, (500, 1500, 2500, 0.0)) for sound in word])
    centers = np.cumsum(lengths) - lengths / 2
    at = np.arange(lengths.sum())
    *formants, loudness = (np.interp(at, centers, track) for track in tracks.T)
    tune = pitch * np.interp(at, [0, len(at)], [1.1, 0.85]) * (1 + 0.02 * rng.standard_normal())
    phase = 2 * np.pi * np.cumsum(tune) / RATE
    voice = np.zeros(len(at))
    for harmonic in range(1, int(0.95 * RATE / 2 / tune.max())):
        frequency = harmonic * tune
        envelope = sum(1 / (1 + ((frequency - size * f) / 80) ** 2) for f in formants) / harmonic
        voice += envelope * np.sin(harmonic * phase)
    samples = loudness * voice + _hiss(word, lengths, rng)
    samples /= 2 * np.abs(samples).max()
    return samples + 0.002 * rng.standard_normal(len(samples))  # the noise of a quiet room


def _hiss(word: str, lengths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the noise of fricatives and stops."""
    parts = []
    for sound, length in zip(word, lengths, strict=True):
        center, width, loudness = HISSES.get(sound, (1000, 1000, 0.0))
        spectrum = np.fft.rfft(rng.standard_normal(length))
        frequencies = np.fft.rfftfreq(length, 1 / RATE)
        band = np.exp(-0.5 * ((frequencies - center) / width) ** 2)
        shape = np.hanning(length)
        if sound in STOPS:
            shape = np.where(np.arange(length) > 0.6 * length, 1.0, 0.0)
        parts.append(loudness * shape * np.fft.irfft(spectrum * band, length))
    return np.concatenate(parts)


def write_words(folder: Path, speakers: range) -> None:
    """Write one WAV file of each digit by each speaker, in a folder for each digit."""
    for speaker in speakers:
        rng = np.random.default_rng(speaker)
        pitch = rng.uniform(90.0, 220.0)
        size = 0.85 + 0.3 * (pitch - 90.0) / 130.0 + rng.uniform(-0.05, 0.05)
        for digit, sounds in WORDS.items():
            samples = speak(sounds, rng, pitch, size)
            audio.write(folder / digit / f"speaker_{speaker:03d}.wav", samples, RATE)


def datasets(options: argparse.Namespace) -> tuple[Dataset, Dataset, tuple[str, ...]]:
    """Return training set, test set and the names of the classes."""
    if options.data is not None:
        whole = audio.AudioFolder(options.data, sample_rate=RATE, duration=SECONDS)
        train, test = random_split(whole, [0.8, 0.2], seed=options.seed)
        return train, test, whole.classes
    counts = (8, 4) if options.quick else (30, 15)
    folders = [options.out / f"train_{counts[0]}", options.out / f"test_{counts[1]}"]
    for folder, first, count in zip(folders, (0, 1000), counts, strict=True):
        write_words(folder, range(first, first + count))
    train, test = (audio.AudioFolder(folder, duration=SECONDS) for folder in folders)
    return train, test, train.classes


def build(train: Dataset, classes: int, options: argparse.Namespace) -> nn.Sequential:
    """Return a model of raw samples: log-mel front end, standardization, sequence classifier."""
    ops.random.set_seed(options.seed)
    mel = features.MelSpectrogram(RATE, n_mels=32, n_fft=256, hop=160, scale="log")
    standardize = features.Standardize().fit(
        ops.reshape(mel(samples), (-1, 32)) for samples, _ in DataLoader(train, 32)
    )
    classifier = nn.models.SequenceClassifier(
        options.layers, classes, in_features=32, hidden_size=options.width, pooling="mean"
    )
    return nn.Sequential(mel, standardize, classifier)


def fit(train: Dataset, test: Dataset, classes: int, options: argparse.Namespace) -> Trainer:
    """Return a trainer after training, with its model."""
    trainer = Trainer(
        build(train, classes, options),
        "cross_entropy",
        optimizer={"type": "adamw", "learning_rate": 4e-3},
        schedule="cosine",
        metrics=["accuracy"],
        clip_norm=1.0,
        seed=options.seed,
        progress=not options.quick,
    )
    trainer.fit(train, test, epochs=options.epochs, batch_size=32)
    return trainer


def accuracies(trainer: Trainer, test: Dataset) -> list[float]:
    """Return the accuracy at each level of noise."""
    noisy = [test.map(audio.AddNoise(snr), seed=1) for snr in NOISE]
    return [float(trainer.evaluate(data, batch_size=64)["accuracy"]) for data in noisy]


def stream_difference(mel: features.MelSpectrogram, samples: np.ndarray) -> float:
    """Return the largest difference of the features of 20 ms chunks from those of the whole."""
    state, parts = mel.initial_state(), []
    for chunk in np.split(samples, range(RATE // 50, len(samples), RATE // 50)):
        y, state = mel.step(ops.array(chunk), state)
        parts.append(y)
    parts.append(mel.flush(state))
    return float(ops.max(ops.abs(ops.concat(parts) - mel(ops.array(samples)))))


def confusion(trainer: Trainer, test: Dataset, classes: int) -> np.ndarray:
    """Return the number of test examples of each class (row) by predicted class (column)."""
    counts = np.zeros((classes, classes), int)
    for samples, labels in DataLoader(test, 64):
        scores = trainer.predict(samples)
        np.add.at(counts, (labels.numpy(), ops.argmax(scores, axis=-1).numpy()), 1)
    return counts


def plot(
    path: Path,
    mel: features.MelSpectrogram,
    test: Dataset,
    classes: tuple[str, ...],
    results: dict[str, list[float]],
    counts: np.ndarray,
) -> None:
    """Plot four mel spectrograms, the accuracy by noise, and the confusion matrix."""
    figure = Figure(figsize=(11, 6.5), layout="constrained")
    axes = figure.subplot_mosaic([["0", "1", "2", "3"], ["noise", "noise", "counts", "counts"]])
    step = max(len(test) // 4, 1)
    for number in range(4):
        samples, label = test[(number * step) % len(test)]
        axes[str(number)].imshow(mel(samples).numpy().T, origin="lower", aspect="auto")
        axes[str(number)].set(title=f'"{classes[label]}"', xlabel="frame", ylabel="mel band")
    for name, values in results.items():
        axes["noise"].plot(NOISE, values, marker="o", label=name)
    axes["noise"].set(xlabel="signal-to-noise ratio (dB)", ylabel="accuracy", ylim=(0, 1.02))
    axes["noise"].legend()
    axes["counts"].imshow(counts, cmap="Blues")
    ticks = range(len(classes))
    axes["counts"].set(xlabel="predicted", ylabel="spoken", title="with augmentation")
    axes["counts"].set_xticks(ticks, classes)
    axes["counts"].set_yticks(ticks, classes)
    figure.savefig(path, dpi=120)


def run(options: argparse.Namespace) -> None:
    """Train both models, print the results and plot them."""
    train, test, classes = datasets(options)
    print(f"{len(train)} training and {len(test)} test recordings of {len(classes)} words")
    plain = fit(train, test, len(classes), options)
    augmented = fit(train.map(AUGMENTATION, seed=options.seed), test, len(classes), options)
    results = {
        "without augmentation": accuracies(plain, test),
        "with augmentation": accuracies(augmented, test),
    }
    print("SNR in dB            " + "".join(f"{snr:8.0f}" for snr in NOISE))
    for name, values in results.items():
        print(f"{name:21s}" + "".join(f"{value:8.1%}" for value in values))
    mel = augmented.model[0]
    difference = stream_difference(mel, test[0][0])
    print(f"features of 20 ms chunks and of the whole differ by at most {difference:.1e}")
    ember.save(augmented.model, options.out / "model")
    counts = confusion(augmented, test, len(classes))
    plot(options.out / "spoken_digits.png", mel, test, classes, results, counts)
    print(f"plot: {options.out / 'spoken_digits.png'}; model: {options.out / 'model'}")


def main(arguments: list[str] | None = None) -> None:
    """Parse the options and run on the selected backend."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default=ember.get_backend(), help="default: the active one")
    parser.add_argument("--layers", default="gru swiglu", help="pattern of the layers")
    parser.add_argument("--width", type=int, default=48, help="hidden size of the model")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, help="folder of recordings; default: synthesized")
    parser.add_argument("--out", type=Path, default=Path("runs/spoken_digits"))
    parser.add_argument("--quick", action="store_true", help="few words, small model, two epochs")
    options = parser.parse_args(arguments)
    if options.quick:
        options.epochs, options.width = 2, 16
    options.out.mkdir(parents=True, exist_ok=True)
    with ember.use_backend(options.backend):
        run(options)


if __name__ == "__main__":
    main()
