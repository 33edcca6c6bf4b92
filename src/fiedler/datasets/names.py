"""Names of classes and features, for data sets whose raw files lack them.

Classes are in the order of the class numbers, features in the order of the columns.
"""

from __future__ import annotations


def _split(text: str, separator: str | None = None) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(separator))


CLASS_NAMES = {
    "ecoli": _split("cp im pp imU om omL imL imS"),
    "glass": _split(
        "building_windows_float building_windows_non_float vehicle_windows_float containers tableware headlamps"
    ),
    "haberman": _split("survived_5y_or_more died_within_5y"),
    "libras": _split(
        """curved swing, horizontal swing, vertical swing, anti-clockwise arc, clockwise arc, circle,
        horizontal straight-line, vertical straight-line, horizontal zigzag, vertical zigzag, horizontal wavy,
        vertical wavy, face-up curve, face-down curve, tremble""",
        ",",
    ),
    "letter": tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "dermatology": _split(
        """psoriasis, seborrheic dermatitis, lichen planus, pityriasis rosea, chronic dermatitis,
        pityriasis rubra pilaris""",
        ",",
    ),
    "soybean_small": _split("D1 D2 D3 D4"),
    "vehicle": _split("opel saab bus van"),
    "zoo": _split("mammal bird reptile fish amphibian insect invertebrate"),
    "usps": tuple("0123456789"),
    "coil20": tuple(f"obj{number}" for number in range(1, 21)),
    # Not part of the file: inferred from the train and test counts of the collection's topics, which leaves sixteen of
    # the small classes undetermined between topics of equal counts.
    "reuters21578": _split(
        """earn, acq, crude, trade, money-fx, interest, ship, sugar, coffee, gold, money-supply, gnp, cpi, cocoa, alum,
        grain, copper, jobs, reserves, rubber, iron-steel, ipi, nat-gas, veg-oil, tin, cotton, bop, wpi, pet-chem,
        livestock, gas, orange, retail, strategic-metal, housing, zinc, lumber, fuel, carcass, heat, lei, oilseed, lead,
        meal-feed, yen, one of potato/tea, one of potato/tea, income, one of instal-debt/nickel, silver,
        one of instal-debt/nickel, one of dlr/platinum, one of dlr/platinum, jet, one of cpu/inventories, groundnut,
        one of cpu/inventories, one of l-cattle/rand/wool, one of coconut/hog/naphtha/propane/rice,
        one of l-cattle/rand/wool, one of coconut/hog/naphtha/propane/rice, one of l-cattle/rand/wool,
        one of coconut/hog/naphtha/propane/rice, one of coconut/hog/naphtha/propane/rice,
        one of coconut/hog/naphtha/propane/rice""",
        ",",
    ),
}

FEATURE_NAMES = {
    "ecoli": _split("mcg gvh lip chg aac alm1 alm2"),
    "glass": _split("RI Na Mg Al Si K Ca Ba Fe"),
    "haberman": _split("age year_of_operation positive_nodes"),
    "libras": tuple(f"{axis}{frame}" for frame in range(1, 46) for axis in "xy"),
    "letter": _split("x-box y-box width high onpix x-bar y-bar x2bar y2bar xybar x2ybr xy2br x-ege xegvy y-ege yegvx"),
    "dermatology": _split(
        """erythema scaling definite_borders itching koebner_phenomenon polygonal_papules follicular_papules
        oral_mucosal_involvement knee_and_elbow_involvement scalp_involvement family_history melanin_incontinence
        eosinophils_in_the_infiltrate PNL_infiltrate fibrosis_of_the_papillary_dermis exocytosis acanthosis
        hyperkeratosis parakeratosis clubbing_of_the_rete_ridges elongation_of_the_rete_ridges
        thinning_of_the_suprapapillary_epidermis
        spongiform_pustule munro_microabcess focal_hypergranulosis disappearance_of_the_granular_layer
        vacuolisation_and_damage_of_basal_layer spongiosis saw-tooth_appearance_of_retes follicular_horn_plug
        perifollicular_parakeratosis inflammatory_monoluclear_inflitrate band-like_infiltrate Age"""
    ),
    "soybean_small": _split(
        """date plant-stand precip temp hail crop-hist area-damaged severity seed-tmt germination plant-growth leaves
        leafspots-halo leafspots-marg leafspot-size leaf-shread leaf-malf leaf-mild stem lodging stem-cankers
        canker-lesion fruiting-bodies external-decay mycelium int-discolor sclerotia fruit-pods fruit-spots seed
        mold-growth seed-discolor seed-size shriveling roots"""
    ),
    "vehicle": _split(
        """COMPACTNESS, CIRCULARITY, DISTANCE CIRCULARITY, RADIUS RATIO, PR.AXIS ASPECT RATIO, MAX.LENGTH ASPECT RATIO,
        SCATTER RATIO, ELONGATEDNESS, PR.AXIS RECTANGULARITY, MAX.LENGTH RECTANGULARITY, SCALED VARIANCE_MAJOR,
        SCALED VARIANCE_MINOR, SCALED RADIUS OF GYRATION, SKEWNESS ABOUT_MAJOR, SKEWNESS ABOUT_MINOR,
        KURTOSIS ABOUT_MAJOR, KURTOSIS ABOUT_MINOR, HOLLOWS RATIO""",
        ",",
    ),
    "zoo": _split(
        """hair feathers eggs milk airborne aquatic predator toothed backbone breathes venomous fins legs tail domestic
        catsize"""
    ),
}
