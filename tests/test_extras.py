from regard.extras import describe_install


def test_an_extra_is_installed_from_the_index_or_from_a_checkout():
    assert describe_install("onnx") == "pip install 'regard[onnx]', or pip install '.[onnx]' in a checkout"
