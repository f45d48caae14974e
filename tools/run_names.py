"""What a kept run is called in a table, for people who did not write its command."""

_METHODS = {
    "pcmepp": "PCME++",
    "mean_only": "PCME++, means only",
    "wasserstein_2": "PCME++ trained on W2",
    "pcme": "PCME",
    "infonce": "InfoNCE",
    "vse_infinity": "VSE∞",
}
_ABLATIONS = {
    "averaged-epochs-0": "PCME++ without weight averaging",
    "kl-weight-0": "PCME++ without VIB",
    "mixed-share-0": "PCME++ without mixed samples",
    "pooling-mean": "PCME++ with mean pooling",
    "pseudo-positive-weight-0": "PCME++ without pseudo-positives",
    "noise-0.5": "PCME++, half of the captions shuffled",
    "noise-0.5-method-infonce": "InfoNCE, half of the captions shuffled",
    "noise-0.5-method-vse_infinity": "VSE∞, half of the captions shuffled",
    "dive": "DivE",
    "dive_alpha_4": "DivE, α = 4",
    "dive_k_1": "DivE, one slot",
    "dive_k_2": "DivE, two slots",
    "dive_t_1": "DivE, one round of attention",
    "pvse_k_1": "PVSE, one element",
    "pvse_k_4": "PVSE, four elements",
    "pie_net_with_smooth_chamfer": "PIE-Net with smooth Chamfer",
    "slots_with_chamfer": "slots with Chamfer",
    "slots_with_mil": "slots with MIL",
    "slots_with_mp": "slots with match probability",
    "gaussian_vse": "Gaussian VSE++",
    "gaussian_vsrn": "Gaussian VSRN",
    "vse": "VSE++",
    "vsrn": "VSRN",
    "pcme_2d": "PCME in two dimensions",
    "pfe": "PFE over InfoNCE",
}


def name_of(folder, script, settings):
    """The name of a run.

    Args:
        folder: name of its folder without the seed.
        script: file name of its recipe.
        settings: its settings.

    Returns:
        Its name, or the recipe's where the zoo's papers have none for it.
    """
    if folder in _ABLATIONS:
        return _ABLATIONS[folder]
    method = settings.get("method")
    if script.startswith("pcmepp") or script == "own_pairs.py":
        name = _METHODS.get(method, method)
        images = settings.get("toy_images")
        return f"{name}, {images:,} scenes drawn" if images else name
    if script.startswith("pcme_"):
        return "PCME, means only" if settings.get("mean_only") else "PCME"
    return script.removesuffix(".py")
