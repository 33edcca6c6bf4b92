"""Names of classes and features, in the order of the columns and class numbers, for sets whose raw files lack them."""

from __future__ import annotations


def _words(text: str, separator: str | None = None) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(separator))


ECOLI_CLASSES = _words("cp im pp imU om omL imL imS")
ECOLI_FEATURES = _words("mcg gvh lip chg aac alm1 alm2")

GLASS_CLASSES = _words(
    "building_windows_float building_windows_non_float vehicle_windows_float containers tableware headlamps"
)
GLASS_FEATURES = _words("RI Na Mg Al Si K Ca Ba Fe")

HABERMAN_CLASSES = _words("survived_5y_or_more died_within_5y")
HABERMAN_FEATURES = _words("age year_of_operation positive_nodes")

LIBRAS_CLASSES = _words(
    """curved swing, horizontal swing, vertical swing, anti-clockwise arc, clockwise arc, circle,
    horizontal straight-line, vertical straight-line, horizontal zigzag, vertical zigzag, horizontal wavy,
    vertical wavy, face-up curve, face-down curve, tremble""",
    ",",
)
LIBRAS_FEATURES = tuple(f"{axis}{frame}" for frame in range(1, 46) for axis in "xy")

LETTER_CLASSES = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
LETTER_FEATURES = _words(
    "x-box y-box width high onpix x-bar y-bar x2bar y2bar xybar x2ybr xy2br x-ege xegvy y-ege yegvx"
)

DERMATOLOGY_CLASSES = _words(
    """psoriasis, seborrheic dermatitis, lichen planus, pityriasis rosea, chronic dermatitis,
    pityriasis rubra pilaris""",
    ",",
)
DERMATOLOGY_FEATURES = _words(
    """erythema scaling definite_borders itching koebner_phenomenon polygonal_papules follicular_papules
    oral_mucosal_involvement knee_and_elbow_involvement scalp_involvement family_history melanin_incontinence
    eosinophils_in_the_infiltrate PNL_infiltrate fibrosis_of_the_papillary_dermis exocytosis acanthosis hyperkeratosis
    parakeratosis clubbing_of_the_rete_ridges elongation_of_the_rete_ridges thinning_of_the_suprapapillary_epidermis
    spongiform_pustule munro_microabcess focal_hypergranulosis disappearance_of_the_granular_layer
    vacuolisation_and_damage_of_basal_layer spongiosis saw-tooth_appearance_of_retes follicular_horn_plug
    perifollicular_parakeratosis inflammatory_monoluclear_inflitrate band-like_infiltrate Age"""
)

SOYBEAN_CLASSES = _words("D1 D2 D3 D4")
SOYBEAN_FEATURES = _words(
    """date plant-stand precip temp hail crop-hist area-damaged severity seed-tmt germination plant-growth leaves
    leafspots-halo leafspots-marg leafspot-size leaf-shread leaf-malf leaf-mild stem lodging stem-cankers canker-lesion
    fruiting-bodies external-decay mycelium int-discolor sclerotia fruit-pods fruit-spots seed mold-growth
    seed-discolor seed-size shriveling roots"""
)

VEHICLE_CLASSES = _words("opel saab bus van")
VEHICLE_FEATURES = _words(
    """COMPACTNESS, CIRCULARITY, DISTANCE CIRCULARITY, RADIUS RATIO, PR.AXIS ASPECT RATIO, MAX.LENGTH ASPECT RATIO,
    SCATTER RATIO, ELONGATEDNESS, PR.AXIS RECTANGULARITY, MAX.LENGTH RECTANGULARITY, SCALED VARIANCE_MAJOR,
    SCALED VARIANCE_MINOR, SCALED RADIUS OF GYRATION, SKEWNESS ABOUT_MAJOR, SKEWNESS ABOUT_MINOR,
    KURTOSIS ABOUT_MAJOR, KURTOSIS ABOUT_MINOR, HOLLOWS RATIO""",
    ",",
)

ZOO_CLASSES = _words("mammal bird reptile fish amphibian insect invertebrate")
ZOO_FEATURES = _words(
    """hair feathers eggs milk airborne aquatic predator toothed backbone breathes venomous fins legs tail domestic
    catsize"""
)

USPS_CLASSES = tuple("0123456789")
COIL20_CLASSES = tuple(f"obj{number}" for number in range(1, 21))

# Not part of the file: inferred from the train and test counts of the collection's topics, which leaves sixteen of the
# small classes open between topics of equal counts.
REUTERS_CLASSES = _words(
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
)
