"""Foreign networks through the adapter: every convention gives the disparities of the twin in NumPy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino
import pytest

from aanet.engines.foreign import running
from aanet.engines.foreign.adapter import ForeignEngine, similarity
from aanet.engines.foreign.files import read_network_file
from aanet.engines.foreign.running import open_runner
from aanet.engines.foreign.spec import ForeignSpec, InputSpec, OutputSpec, SizeSpec
from aanet.engines.foreign.tensorflow_graph import without_tiles
from aanet.engines.table import Options
from aanet.errors import ReadError, UnsupportedError
from aanet.matcher import StereoMatcher
from aanet.typing import FloatMap
from helpers import foreign_networks as networks
from helpers.foreign_networks import SPEC, Network, block_matching, network, with_image, with_output
from helpers.matching_network import plane

IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
STACKED = (InputSpec("pair", "left+right"),)
VARIANTS: dict[str, Network] = {
    "plain": network(),
    "NHWC": network(with_image(layout="NHWC")),
    "BGR": network(with_image(color="BGR")),
    "gray": network(with_image(color="gray")),
    "bytes": network(with_image(range=(0.0, 255.0))),
    "symmetric": network(with_image(range=(-1.0, 1.0))),
    "normalized": network(with_image(**IMAGENET)),
    "stacked": network(replace(SPEC, inputs=STACKED)),
    "stacked, right first": network(replace(SPEC, inputs=(InputSpec("pair", "right+left"),))),
    "stacked gray NHWC": network(replace(with_image(layout="NHWC", color="gray"), inputs=STACKED)),
    "negative": network(with_output(sign="negative")),
    "scaled": network(with_output(scale=0.25)),
    "flow": network(with_output(sign="negative"), channels=2),
    "second channel": network(with_output(channel=1), channels=2),
    "NHWC output": network(output_layout="NHWC"),
    "other names": network(
        replace(SPEC, inputs=(InputSpec("x.1", "left"), InputSpec("x.2", "right")), output=OutputSpec("y"))
    ),
}


@pytest.fixture(scope="module")
def pair() -> tuple[FloatMap, FloatMap]:
    """A plane of 5 pixels, [1, 3, H, W] in 0 … 1."""
    left, right = (np.float32(each.transpose(2, 0, 1)[None] / 255) for each in plane(40, 64, 5))
    return left, right


def opened(path: Path, spec: ForeignSpec, engine: str | None = None) -> ForeignEngine:
    return ForeignEngine(open_runner(read_network_file(path), engine, Options()), spec, 1000)


@pytest.mark.parametrize("engine", ["openvino", "onnxruntime"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_convention_gives_the_disparities_of_the_twin(
    variant: str, engine: str, pair: tuple[FloatMap, FloatMap], tmp_path: Path
) -> None:
    made = VARIANTS[variant]
    disparity, confidence = opened(made.save(tmp_path / "a.onnx"), made.spec, engine)(*pair)
    np.testing.assert_allclose(disparity[0], block_matching(pair[0][0], pair[1][0]), atol=1e-4)
    assert confidence.shape == disparity.shape
    assert (confidence[0, 8:-8, 16:-8] > 0.95).mean() > 0.9


def test_a_map_of_lower_resolution_is_enlarged(pair: tuple[FloatMap, FloatMap], tmp_path: Path) -> None:
    for scale in (1.0, 4.0):
        made = network(with_output(resolution=0.25, scale=scale))
        disparity, _ = opened(made.save(tmp_path / "a.onnx"), made.spec)(*pair)
        assert disparity.shape == (1, 40, 64)
        np.testing.assert_allclose(disparity[0, 8:-8, 16:-8], 5, atol=0.01)


def test_fractions_of_the_width_become_pixels(pair: tuple[FloatMap, FloatMap], tmp_path: Path) -> None:
    made = network(with_output(scale=64.0))
    spec = replace(made.spec, output=replace(made.spec.output, scale=1.0, unit="width"))
    disparity, _ = opened(made.save(tmp_path / "a.onnx"), spec)(*pair)
    np.testing.assert_allclose(disparity[0], block_matching(pair[0][0], pair[1][0]), atol=1e-3)


def test_inputs_of_half_size_are_resized_copies(pair: tuple[FloatMap, FloatMap], tmp_path: Path) -> None:
    inputs = (
        InputSpec("init_left", "left", 0.5),
        InputSpec("init_right", "right", 0.5),
        InputSpec("next_left", "left"),
        InputSpec("next_right", "right"),
    )
    made = network(replace(SPEC, inputs=inputs, size=SizeSpec(height=40, width=64)))
    disparity, _ = opened(made.save(tmp_path / "a.onnx"), made.spec)(*pair)
    np.testing.assert_allclose(disparity[0], block_matching(pair[0][0], pair[1][0]), atol=1e-4)


def test_images_are_resized_for_a_network_of_one_size(tmp_path: Path) -> None:
    left, right = (np.float32(each.transpose(2, 0, 1)[None] / 255) for each in plane(80, 128, 10))
    made = network(replace(SPEC, size=SizeSpec(height=40, width=64)))
    engine = opened(made.save(tmp_path / "a.onnx"), made.spec)
    disparity, _ = engine(left, right)
    assert disparity.shape == (1, 80, 128)
    np.testing.assert_allclose(disparity[0, 16:-16, 40:-16], 10, atol=0.01)
    assert "images resized to 40×64" in engine.description


def test_pairs_of_a_batch_are_matched_one_by_one(pair: tuple[FloatMap, FloatMap], tmp_path: Path) -> None:
    made = network()
    engine = opened(made.save(tmp_path / "a.onnx"), made.spec)
    left, right = np.concatenate([pair[0]] * 2), np.concatenate([pair[1], pair[0]])
    disparity, _ = engine(left, right)
    np.testing.assert_array_equal(disparity[0], engine(*pair)[0][0])
    assert disparity[1, 8:-8, 16:-8].max() == 0


def test_a_matcher_pads_and_tiles_around_it(tmp_path: Path) -> None:
    made = network(replace(SPEC, size=SizeSpec(8, 16)))
    matcher = StereoMatcher.with_engine(opened(made.save(tmp_path / "a.onnx"), made.spec))
    left, right = plane(301, 421, 6)
    whole = matcher(left, right, inspect=False).disparity
    tiled = matcher(left, right, inspect=False, tile="280x400").disparity
    inner = np.s_[16:-16, 32:-16]
    np.testing.assert_allclose(whole[inner], 6)
    np.testing.assert_allclose(tiled[inner], 6)


def test_openvino_ir_and_frozen_graphs(pair: tuple[FloatMap, FloatMap], tmp_path: Path) -> None:
    made = network(with_output())
    openvino.save_model(openvino.convert_model(made.save(tmp_path / "a.onnx")), tmp_path / "b.xml", False)
    disparity, _ = opened(tmp_path / "b.xml", made.spec)(*pair)
    np.testing.assert_allclose(disparity[0], block_matching(pair[0][0], pair[1][0]), atol=1e-4)
    (tmp_path / "c.pb").write_bytes(networks.frozen_graph(factor=7.0))
    gray = replace(with_image(layout="NHWC", color="gray"), inputs=(InputSpec("images", "left+right"),))
    disparity, _ = opened(tmp_path / "c.pb", replace(gray, output=OutputSpec("disparity", channel=1)))(*pair)
    expected = 7 * np.tensordot(np.array(networks.GRAY), pair[1][0], 1)
    np.testing.assert_allclose(disparity[0], expected, atol=1e-2)


@pytest.mark.parametrize("multiples", [(1, 1, 1, 3), (1, 2, 3, 1), (1, 1, 1, 1)])
def test_repeated_tensors_of_a_frozen_graph_are_those_of_tensorflow(
    multiples: tuple[int, ...], tmp_path: Path
) -> None:
    (tmp_path / "a.pb").write_bytes(networks.frozen_graph(factor=2.0, multiples=multiples))
    runner = open_runner(read_network_file(tmp_path / "a.pb"), None, Options())
    image = np.arange(1 * 8 * 12 * 2, dtype=np.float32).reshape(1, 8, 12, 2)
    (found,) = runner({runner.graph.inputs[0].name: image}).values()
    np.testing.assert_allclose(found, np.tile(2 * image, multiples))
    rewritten = without_tiles(networks.frozen_graph(multiples=multiples))
    assert (b"Tile" in rewritten.replace(b"Tmultiples", b"")) == (max(multiples) == 1)


def test_what_is_not_a_number_is_zero(pair: tuple[FloatMap, FloatMap], tmp_path: Path) -> None:
    (tmp_path / "c.pb").write_bytes(networks.frozen_graph(factor=float("nan")))
    gray = replace(with_image(layout="NHWC", color="gray"), inputs=(InputSpec("images", "left+right"),))
    disparity, confidence = opened(tmp_path / "c.pb", gray)(*pair)
    assert (disparity == 0).all()
    assert np.isfinite(confidence).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": (InputSpec("nothing", "left"), InputSpec("right", "right"))}, "has no input 'nothing'"),
        ({"inputs": (InputSpec("left", "left"),)}, "does not say what the input 'right' takes"),
        ({"output": OutputSpec("nothing")}, "has no output 'nothing'; it has disparity"),
        ({"output": OutputSpec("disparity", channel=3)}, "does not fit channel 3"),
        ({"output": OutputSpec("disparity", resolution=0.5)}, "resolution of 0.5"),
        ({"image": replace(SPEC.image, layout="NHWC")}, "cannot run"),
    ],
)
def test_a_spec_that_does_not_fit_is_one_sentence(
    changes: dict[str, object], message: str, pair: tuple[FloatMap, FloatMap], tmp_path: Path
) -> None:
    made = network()
    engine = opened(made.save(tmp_path / "a.onnx"), replace(made.spec, **changes))
    with pytest.raises(ReadError, match=message) as caught:
        engine(*pair)
    assert "\n" not in str(caught.value)


def test_engines_that_cannot_run_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "c.pb").write_bytes(networks.frozen_graph())
    with pytest.raises(UnsupportedError, match="does not run on the engine onnxruntime"):
        open_runner(read_network_file(tmp_path / "c.pb"), "onnxruntime", Options())
    file = read_network_file(network().save(tmp_path / "a.onnx"))
    with pytest.raises(UnsupportedError, match="float32; leave bf16 out"):
        open_runner(file, "onnxruntime", Options(precision="bf16"))


def test_onnx_runtime_takes_over_what_openvino_cannot_convert(
    pair: tuple[FloatMap, FloatMap], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ReadError("OpenVINO cannot read it.")

    monkeypatch.setattr(running, "OpenVINORunner", refuse)
    made = network()
    engine = opened(made.save(tmp_path / "a.onnx"), made.spec)
    assert engine.name == "onnxruntime"
    assert "(OpenVINO cannot convert the network)" in engine.description
    np.testing.assert_allclose(engine(*pair)[0][0], block_matching(pair[0][0], pair[1][0]), atol=1e-4)
    with pytest.raises(ReadError, match="OpenVINO cannot read it"):
        opened(made.save(tmp_path / "a.onnx"), made.spec, "openvino")


def test_confidence_is_high_where_the_match_explains_the_image_and_0_outside() -> None:
    left, right = (np.float32(each.transpose(2, 0, 1) / 255) for each in plane(40, 64, 5))
    true, wrong = (np.full((40, 64), value, np.float32) for value in (5, 9))
    assert similarity(left, right, true)[8:-8, 16:-8].min() > 0.99
    assert similarity(left, right, wrong)[8:-8, 16:-8].mean() < 0.5
    assert (similarity(left, right, true)[:, :5] == 0).all()
