/* recipe.c - the studies: rows, recipes, and which table or figure of the paper each makes. */
#include "study/recipe.h"

#include <stddef.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* shared by most evaluations; the seeds and counts of starts are settings */
#define EVAL                                                                                       \
    "eval --model {models} --data {data} --out " CGS_STUDY_LINES " --json {device} {threads} "     \
    "{precision}{lines} {plug_in} "
#define PUBLISHED EVAL "--seeds {start_seeds} --episodes {starts} "
#define HELD_OUT EVAL "--held-out --skip-solved --seeds {held_seeds} --episodes {held} "
#define SEEDED "{of_seed}{first_seed}"

/* clang-format off */
const cgs_study_row cgs_study_rows[] = {
    {"collect", CGS_EACH_STUDY, "collect {env}",
     "collect --env {env} --out @/data.h5 --episodes {episodes} --size {side} --every {every} --seed {data_seed} "
     "{policy} {cores} --json",
     "@/data.h5", "", "", true, true, true},
    /* the frozen backbone of DINO-WM; left out when the user has one */
    {"pretrain", CGS_EACH_STUDY, "pretrain a stand-in backbone",
     "pretrain --data {data} --out @/backbone.safetensors --size {preset} --updates {backbone_updates} "
     "--seed {data_seed} --resume --json {device} {threads} {precision} {pretrain}",
     "@/backbone.safetensors", "collect", "", true, true, true},
    {"train", CGS_EACH_MODEL, "train {model}{first_seed}",
     "train --data {data} --out @/models/{model} --size {preset} --method {method} --resume --json "
     "{device} {threads} {precision} train.seed={seed} train.updates={updates} "
     "train.validate_every={validate} train.checkpoint_every={checkpoint} {train} {extra}",
     "@/models/{model}/model.safetensors", "collect pretrain", "", true, false, true},
    {"prior", CGS_EACH_MODEL, "prior {model}{first_seed}",
     "prior --model @/models/{model} --data {data} --json {device} {threads} prior.seed={seed} "
     "{prior}",
     "@/models/{model}/prior.safetensors", "train", "", false, false, true},

    /* the paper's protocol: starts of seeds 0, 1 and 42, all episodes */
    {"budget-mppi", CGS_EACH_SEED, "MPPI over K" SEEDED,
     PUBLISHED "--planner mppi --samples {K} --iters {iters}", CGS_STUDY_LINES, "train", "", false, false, false},
    {"budget-pg-mppi", CGS_EACH_SEED, "PG-MPPI over K" SEEDED,
     PUBLISHED "--planner pg-mppi --samples {K} --iters {iters}", CGS_STUDY_LINES, "prior", "prior-only", false, false, false},
    {"budget-cem", CGS_EACH_SEED, "CEM over K" SEEDED,
     PUBLISHED "--planner cem --samples {K} --iters {iters}", CGS_STUDY_LINES, "train", "", false, false, false},
    {"budget-pg-cem", CGS_EACH_SEED, "PG-CEM over K" SEEDED,
     PUBLISHED "--planner pg-cem --samples {K} --iters {iters}", CGS_STUDY_LINES, "prior", "", false, false, false},
    {"gd", CGS_EACH_SEED, "gradient descent" SEEDED,
     PUBLISHED "--planner gd zero --gd-steps {gd_steps}", CGS_STUDY_LINES, "train", "", false, false, false},
    {"at-K", CGS_EACH_SEED, "MPPI, CEM and GD at one K" SEEDED,
     PUBLISHED "--planner mppi cem gd --samples {one_K} --iters {iters}", CGS_STUDY_LINES, "train", "budget-mppi budget-cem gd", false, false, false},
    {"refine", CGS_EACH_SEED, "MPPI and CEM over iterations" SEEDED,
     PUBLISHED "--planner mppi cem --samples {one_K} --iters {I}", CGS_STUDY_LINES, "train", "budget-mppi budget-cem", false, false, false},
    {"temperature", CGS_EACH_SEED, "MPPI over temperature" SEEDED,
     PUBLISHED "--planner mppi --samples {one_K} --iters {iters} --tau {tau}", CGS_STUDY_LINES, "train", "budget-mppi refine", false, false, false},

    /* what the models observe at first: Reacher's three histories */
    {"history-dataset", CGS_EACH_SEED, "recorded history" SEEDED,
     PUBLISHED "--history dataset --planner mppi cem gd --samples {K} --iters {iters}", CGS_STUDY_LINES, "train", "", false, false, false},
    {"history-online", CGS_EACH_SEED, "online history" SEEDED,
     PUBLISHED "--history online --planner mppi cem gd --samples {K} --iters {iters}", CGS_STUDY_LINES, "train", "", false, false, false},

    /* priors before any search: their distance from the goal, and their success alone (one
     * candidate; the sweep over K reuses the result) */
    {"prior-quality", CGS_EACH_STUDY, "quality of the priors",
     "prior --quality --model {models} --data {data} --out @/prior-quality.json --seeds {start_seeds} "
     "--episodes {starts} {device} {threads} {plug_in} {quality}",
     "@/prior-quality.json", "prior", "", false, false, false},
    {"prior-only", CGS_EACH_SEED, "priors alone" SEEDED,
     PUBLISHED "--planner pg-mppi --samples 1 --iters {iters}", CGS_STUDY_LINES, "prior", "", false, false, false},

    /* the second protocol: held-out episodes, many starts, none of them already solved */
    {"held-out", CGS_EACH_SEED, "held-out, MPPI and CEM" SEEDED,
     HELD_OUT "--planner mppi cem --samples {held_K} --iters {iters}", CGS_STUDY_LINES, "train", "", false, false, false},
    {"held-out-pg", CGS_EACH_SEED, "held-out, with priors" SEEDED,
     HELD_OUT "--planner pg-mppi pg-cem --samples {held_pg_K} --iters {iters}", CGS_STUDY_LINES, "prior", "", false, false, false},
    /* planners at the same number of rollouts */
    {"rollouts", CGS_EACH_SEED, "success over rollouts" SEEDED,
     HELD_OUT "--planner {rollout_planners} --rollouts {R}", CGS_STUDY_LINES, "prior", "", false, false, false},
    {"held-out-gd", CGS_EACH_SEED, "held-out, gradient descent" SEEDED,
     HELD_OUT "--planner gd zero --gd-steps {gd_steps}", CGS_STUDY_LINES, "train", "", false, false, false},

    /* other judges of the same planners (docs/planning.md) */
    {"moderate", CGS_EACH_SEED, "moderate protocol" SEEDED,
     PUBLISHED "--protocol moderate --planner {judged} --samples {one_K} --iters {iters}", CGS_STUDY_LINES, "train", "", false, false, false},
    {"strict", CGS_EACH_SEED, "strict protocol" SEEDED,
     PUBLISHED "--protocol strict --planner {judged} --samples {one_K} --iters {iters}", CGS_STUDY_LINES, "train", "", false, false, false},

    {"geometry", CGS_EACH_STUDY, "geometry",
     "geometry --model {models} --data {data} --out @/geometry.json {device} {threads} {plug_in} {geometry}",
     "@/geometry.json", "train", "", false, false, false},
    {"mechanism", CGS_EACH_STUDY, "mechanism of MPPI",
     "geometry --mechanism --model {models} --data {data} --out @/mechanism.json {device} {threads} "
     "{plug_in} {mechanism}",
     "@/mechanism.json", "train", "", false, false, false},
    {"theory", CGS_EACH_STUDY, "theory",
     "theory --systems {systems} --model {models} --data {data} --out @/theory.json {device} "
     "{threads} {theory}",
     "@/theory.json", "train", "", false, false, false},
    {"probe", CGS_EACH_STUDY, "probes",
     "probe --model {models} --data {data} --out @/probe.json {device} {threads} {plug_in} {probe}",
     "@/probe.json", "train", "", false, false, false},
    {"decode", CGS_EACH_STUDY, "imagined beside simulated",
     "decode --model {models} --data {data} --strip --held-out --out @/decode.json --samples {gif_K} "
     "--iters {iters} --seed {gif_seed} {device} {threads} {plug_in} {decode}",
     "@/decode.json", "train", "", false, false, false},
    {"surprise", CGS_EACH_STUDY, "surprise",
     "surprise --model {models} --data {data} --out @/surprise.json {device} {threads} {surprise}",
     "@/surprise.json", "train", "", false, false, false},
    {"timing", CGS_EACH_STUDY, "planning time of three architectures",
     "bench architectures --size {preset} --out @/timing.json --json {device} {threads} {precision} "
     "{timing}",
     "@/timing.json", "", "", false, false, false},
    {"plan", CGS_EACH_FIRST, "watch {model} plan",
     "plan --model @/models/{model} --data {data} --held-out --planner mppi --samples {gif_K} "
     "--iters {iters} --seed {gif_seed} --gif @/plans/{model}.gif --json {device} {threads} {plug_in}",
     "@/plans/{model}.gif", "train", "", false, false, false},
    {"report", CGS_EACH_SEED, "report" SEEDED, "report @ --out @/report.html", "@/report.html", "*", "", false, false, false},
};
/* clang-format on */
const int cgs_study_row_count = COUNT(cgs_study_rows);

const char cgs_study_defaults[] =
    "data=@/"
    "data.h5|data_seed=0|every=1|policy=|plug_in=|train=|prior=|geometry=|mechanism=|probe=|theory="
    "|"
    "quality=|decode=|precision=|lines=|rows=|seeds=3072|minutes=|judged=cem|"
    "backbone=@/backbone.safetensors|backbone_updates=2000|pretrain=|timing=|"
    "patch=|plain=|shaped=|lewm=|"
    "systems=2000|surprise=--episode 0 --edit teleport:4 freeze:4 reverse:4|"
    "updates=0|validate=500|checkpoint=500|iters=30|one_K=128|gif_K=32|gif_seed=1|gd_steps=100|"
    "K=1,2,4,8,16,32,64,128,256|I=1,2,5,10,15,20,25,30|tau=0.25,0.5,1,2,4,8,16,32,64,128,256,512|"
    "R=16,32,64,128,256|rollout_planners=pg-gn,gn,pg-mppi,mppi,icem,cem|"
    "start_seeds=0,1,42|starts=50|held_seeds=0|held=500|held_K=8,32,128|held_pg_K=1,8,32,128";

static const cgs_variant three[] = {
    {"lewm", "lewm", ""}, {"lewm-ts", "lewm-ts", ""}, {"lewm-cgs", "lewm-cgs", ""}};

static const cgs_variant references[] = {{"lewm-cgs", "lewm-cgs", ""},
                                         {"lewm-cgs-xyz-all", "lewm-cgs-xyz-all", ""},
                                         {"lewm-cgs-full", "lewm-cgs-full", ""}};

static const cgs_variant histories[] = {{"lewm", "lewm", ""},
                                        {"lewm-cgs", "lewm-cgs", ""},
                                        {"lewm-cgs-transition", "lewm-cgs-transition", ""}};

/* one setting away from the reference, which comes first */
static const cgs_variant ablations[] = {
    {"lewm-cgs", "lewm-cgs", ""},
    {"lewm-cgs-ramp-0", "lewm-cgs", "loss.cgs.ramp=0"},
    {"lewm-cgs-ramp-0.1", "lewm-cgs", "loss.cgs.ramp=0.1"},
    {"lewm-cgs-ramp-0.2", "lewm-cgs", "loss.cgs.ramp=0.2"},
    {"lewm-cgs-N-2", "lewm-cgs", "model.history=2"},
    {"lewm-cgs-N-4", "lewm-cgs", "model.history=4"},
    {"lewm-cgs-sigreg-0.03", "lewm-cgs", "loss.sigreg.weight=0.03"},
    {"lewm-cgs-sigreg-0.06", "lewm-cgs", "loss.sigreg.weight=0.06"},
    {"lewm-cgs-sigreg-0.12", "lewm-cgs", "loss.sigreg.weight=0.12"},
    {"lewm-cgs-weight-0.005", "lewm-cgs", "loss.cgs.weight=0.005"},
    {"lewm-cgs-weight-0.05", "lewm-cgs", "loss.cgs.weight=0.05"},
    {"lewm-cgs-weight-0.1", "lewm-cgs", "loss.cgs.weight=0.1"},
    {"lewm-cgs-weight-0.5", "lewm-cgs", "loss.cgs.weight=0.5"},
};

/* one model after more and more updates */
static const cgs_variant by_updates[] = {{"lewm", "lewm", ""},
                                         {"lewm-500", "lewm", "train.updates=500"},
                                         {"lewm-1000", "lewm", "train.updates=1000"},
                                         {"lewm-2000", "lewm", "train.updates=2000"}};

/* DINO-WM: six models on frozen features, then LeWM for where the paper compares architectures.
 * {patch}, {plain}, {shaped} and {lewm}: more settings of those with patch tokens, without and with
 * a loss on geometry, and of LeWM */
#define FROZEN "--backbone {backbone} "
enum { DINO_MODELS = 6 };
static const cgs_variant dino_and_lewm[] = {
    {"dinowm-cls", "dinowm-cls", FROZEN "{plain}"},
    {"dinowm-cls-ts", "dinowm-cls-ts", FROZEN "{shaped}"},
    {"dinowm-cls-cgs", "dinowm-cls-cgs", FROZEN "{shaped}"},
    {"dinowm-patch", "dinowm-patch", FROZEN "{patch} {plain}"},
    {"dinowm-patch-ts", "dinowm-patch-ts", FROZEN "{patch} {shaped}"},
    {"dinowm-patch-cgs", "dinowm-patch-cgs", FROZEN "{patch} {shaped}"},
    {"lewm", "lewm", "{lewm}"},
    {"lewm-ts", "lewm-ts", "{lewm}"},
    {"lewm-cgs", "lewm-cgs", "{lewm}"}};

#define MAIN                                                                                       \
    "collect train prior prior-quality prior-only budget-mppi budget-pg-mppi budget-cem "          \
    "budget-pg-cem gd held-out held-out-pg held-out-gd rollouts refine temperature geometry "      \
    "mechanism "                                                                                   \
    "probe theory decode surprise plan report"
/* every claim of the paper that a laptop can look into, with what the claims need first */
#define LAPTOP_ROWS                                                                                \
    "rows=collect train prior budget-mppi budget-cem gd budget-pg-mppi budget-pg-cem held-out "    \
    "held-out-pg held-out-gd moderate strict refine temperature prior-quality geometry mechanism " \
    "probe report|"
#define PAPER "preset=paper|side=224|"
#define SMALL "preset=small|side=64|updates=1000|validate=250|checkpoint=250|"

/* The paper's model and images with data, updates and rates for minutes on one GPU: images only
 * where windows can begin, six times the paper's learning rate because there are few updates, fewer
 * temperatures (the paper's own among them) and fewer budgets on held-out episodes */
#define BRIEF                                                                                      \
    PAPER "every=5|updates=2000|checkpoint=1000|train=optim.lr=3e-4|tau=0.25,1,4,16,64,128,512|"   \
          "held_K=32,128|held_pg_K=1,32,128|"

/* Small models, three training seeds and short lines.  Fewer starts (the first two of the paper's
 * three lists), budgets, iterations and temperatures than the paper's, each with the ends and what
 * the tables need. */
#define SHORT                                                                                      \
    "lines= --compact|start_seeds=0,1|K=1,8,32,128|I=1,5,30|tau=16,128|held=100|held_K=128|"       \
    "held_pg_K=128|prior=prior.episodes=1200 prior.updates=2000 prior.every=100 "                  \
    "prior.patience=5 prior.hidden=256 prior.batch=256|validate=1000|checkpoint=1000|"
#define LAPTOP                                                                                     \
    LAPTOP_ROWS                                                                                    \
    "preset=small|side=64|every=5|train=train.batch=32 optim.kind=muon|seeds=3072,1,2|" SHORT
/* Minutes of two quiet cores.  An episode that succeeds with its first plan needs no second, so
 * most evaluations on TwoRooms take little more than half as long. */
#define EVALUATED                                                                                  \
    "prior:0.3 budget-mppi:1 budget-cem:1 gd:0.4 budget-pg-mppi:1 budget-pg-cem:1 "                \
    "moderate:0.8 strict:0.9 held-out:1.5 held-out-pg:1.5 held-out-gd:0.4 refine:0.3 "             \
    "temperature:1.5 prior-quality:0.3 geometry:1 mechanism:1 probe:3 report:0.1"
#define EVALUATED_SOON                                                                             \
    "prior:0.3 budget-mppi:0.5 budget-cem:0.5 gd:0.2 budget-pg-mppi:0.5 budget-pg-cem:0.5 "        \
    "moderate:0.4 strict:0.6 held-out:0.8 held-out-pg:0.6 held-out-gd:0.2 refine:0.2 "             \
    "temperature:0.8 prior-quality:0.3 geometry:1 mechanism:1 probe:3 report:0.1"
#define TINY                                                                                       \
    "preset=small|side=64|every=5|episodes=12|updates=4|validate=4|checkpoint=4|seeds=3072,1|"     \
    "train=train.batch=4 loss.sigreg.projections=16 train.validate_batches=1|"                     \
    "prior=prior.updates=4 prior.every=2 prior.batch=16 prior.hidden=16|lines= --compact|"         \
    "K=1,2|I=1,2|iters=2|one_K=2|tau=4,64|held=2|starts=2|start_seeds=0,1|held_K=2|held_pg_K=2|"   \
    "gd_steps=2|gif_K=2|geometry=--anchors 4 --windows 1|mechanism=--anchors 2|systems=4|"         \
    "probe=--episodes 10|backbone_updates=2|pretrain=--batch 4|timing=--runs 1|"

/* DINO-WM.  At 224 pixels the patch features of a large dataset do not fit on a disk (150 kB per
 * frame), so the backbone runs in every update. */
#define DINO_ROWS "collect pretrain train budget-mppi budget-cem gd"
#define DINO "K=32,64,128|"
#define LARGE PAPER "patch=data.features=false|"
#define DINO_PAPER LARGE "backbone_updates=10000|"
#define DINO_SMALL SMALL "backbone_updates=1000|"
/* The paper's sizes, everything run once in minutes on one GPU: one seed, ten starts.  LeWM sees as
 * many windows as the others.  So few updates at the paper's rates would leave projector and
 * adapter at their initial values, and TS and CGS without effect; hence ten times those rates, as
 * in the small preset. */
#define DINO_BRIEF                                                                                 \
    LARGE "backbone_updates=300|pretrain=--precision bf16|updates=400|validate=200|"               \
          "checkpoint=200|plain=optim.head_lr=1e-5|shaped=optim.head_lr=1e-4|"                     \
          "lewm=train.batch=32|start_seeds=0|starts=10|timing=--runs 1|"
/* Table 13's budgets at laptop size: two seeds */
#define DINO_LAPTOP                                                                                \
    "rows=collect pretrain train budget-mppi budget-cem gd report|"                                \
    "preset=small|side=64|every=5|seeds=3072,1|lines= --compact|updates=2000|validate=500|"        \
    "checkpoint=500|backbone_updates=2000|train=train.batch=32|K=32,128|starts=30|"                \
    "minutes=collect:1 pretrain:4 train:8 budget-mppi:20 budget-cem:20 gd:6 report:0.1|"
#define DINO_TINY                                                                                  \
    TINY "rows=collect pretrain train budget-mppi budget-cem gd report|"                           \
         "train=model.predictor.layers=1 train.batch=4 train.validate_batches=1 "                  \
         "data.train_fraction=0.7|K=2|iters=1|gd_steps=1|starts=1|start_seeds=0|"
#define TWENTY "train=train.schedule_epochs=20|"

/* The published prior is fitted to all episodes for long; ours stops early, by validation. */
#define PRIOR_ROWS "collect train prior prior-quality prior-only budget-pg-mppi report"
#define PRIOR_LAPTOP                                                                               \
    "preset=small|side=64|every=5|seeds=3072,1|train=train.batch=32|" SHORT                        \
    "prior=prior.updates=20000 prior.every=500 prior.patience=40 prior.batch=256|K=1,8,32|"
#define PRIOR_MINUTES(train)                                                                       \
    "minutes=collect:2 train:" #train                                                              \
    " prior:10 prior-quality:1 prior-only:0.2 budget-pg-mppi:3 report:0.1"

/* settings by preset, in the order of cgs_preset */
#define PRESETS(...)                                                                               \
    { __VA_ARGS__ }

const cgs_recipe cgs_recipes[] = {
    {"tworooms", "TwoRooms: three models, five planners, every sweep", MAIN, three, COUNT(three),
     "env=tworooms",
     PRESETS(PAPER "episodes=10000", SMALL "episodes=4000", BRIEF "episodes=6000",
             LAPTOP "seeds=3072,1,2,3,4|episodes=4000|updates=3000|"
                    "minutes=collect:0.1 train:2.8 " EVALUATED_SOON,
             TINY LAPTOP_ROWS "seeds=3072,1,2")},
    {"reacher", "Reacher: the same", MAIN, three, COUNT(three), "env=reacher",
     PRESETS(PAPER "episodes=10000", SMALL "episodes=2000", BRIEF "episodes=3000",
             LAPTOP "episodes=3000|updates=15000|minutes=collect:0.2 train:14 " EVALUATED,
             TINY LAPTOP_ROWS)},
    {"cube", "Cube: the same", MAIN, three, COUNT(three), "env=cube",
     PRESETS(PAPER "episodes=10000", SMALL "episodes=2000", BRIEF "episodes=1500",
             LAPTOP "episodes=1500|updates=15000|minutes=collect:4 train:14 " EVALUATED,
             TINY LAPTOP_ROWS)},
    {"pusht", "PushT: the same", MAIN, three, COUNT(three), "env=pusht",
     PRESETS(PAPER "episodes=18500", SMALL "episodes=4000", BRIEF "episodes=8000",
             LAPTOP "episodes=4000|updates=30000|minutes=collect:0.6 train:28 " EVALUATED,
             TINY LAPTOP_ROWS)},
    {"ablations", "PushT: ramp, history N, weights of SIGReg and CGS", "collect train at-K report",
     ablations, COUNT(ablations), "env=pusht",
     PRESETS(PAPER "episodes=18500", SMALL "episodes=4000", NULL,
             /* on the environment where small models plan best */
             "preset=small|side=64|every=5|env=tworooms|episodes=4000|updates=2000|seeds=3072,1|"
             "train=train.batch=32|" SHORT "minutes=collect:1 train:2.5 at-K:20 report:0.1",
             TINY "env=tworooms")},
    {"cube-references", "Cube: reference of CGS",
     "collect train budget-mppi budget-cem refine report", references, COUNT(references),
     "env=cube",
     PRESETS(PAPER "episodes=10000", SMALL "episodes=2000", NULL,
             "preset=small|side=64|every=5|episodes=1500|updates=6000|seeds=3072,1|"
             "train=train.batch=32|" SHORT "minutes=collect:10 train:7.5 budget-mppi:4 "
             "budget-cem:4 refine:5 report:0.1",
             TINY)},
    {"reacher-histories", "Reacher: reference of CGS and observed history",
     "collect train budget-mppi budget-cem gd history-dataset history-online report", histories,
     COUNT(histories), "env=reacher",
     PRESETS(PAPER "episodes=10000", SMALL "episodes=2000", NULL,
             "preset=small|side=64|every=5|episodes=3000|updates=6000|seeds=3072,1|"
             "train=train.batch=32|" SHORT "minutes=collect:1 train:7.5 budget-mppi:4 "
             "budget-cem:4 gd:0.5 history-dataset:10 history-online:9 report:0.1",
             TINY)},
    {"dinowm-pusht", "PushT: six models on frozen features beside LeWM, and the time of planning",
     DINO_ROWS " timing plan report", dino_and_lewm, COUNT(dino_and_lewm), DINO "env=pusht",
     PRESETS(DINO_PAPER "episodes=18500", DINO_SMALL "episodes=600", DINO_BRIEF "episodes=400",
             NULL, NULL)},
    /* the paper's data and epochs are known for PushT alone; elsewhere those of the code that it
     * follows: 20 epochs of 1,920, 2,000 and 4,000 trajectories */
    {"dinowm-wall", "Wall: six models on frozen features", DINO_ROWS " plan report", dino_and_lewm,
     DINO_MODELS, DINO "env=wall",
     PRESETS(DINO_PAPER TWENTY "episodes=1920", DINO_SMALL "episodes=600",
             DINO_BRIEF "episodes=800", DINO_LAPTOP "episodes=1500", DINO_TINY)},
    {"dinowm-pointmaze-umaze", "PointMaze U: the same", DINO_ROWS " plan report", dino_and_lewm,
     DINO_MODELS, DINO "env=pointmaze-umaze",
     PRESETS(DINO_PAPER TWENTY "episodes=2000", DINO_SMALL "episodes=600",
             DINO_BRIEF "episodes=400", DINO_LAPTOP "episodes=1000", DINO_TINY)},
    {"dinowm-pointmaze-medium", "PointMaze medium: the same", DINO_ROWS " plan report",
     dino_and_lewm, DINO_MODELS, DINO "env=pointmaze-medium",
     PRESETS(DINO_PAPER TWENTY "episodes=4000", DINO_SMALL "episodes=600",
             DINO_BRIEF "episodes=400", DINO_LAPTOP "episodes=1000", DINO_TINY)},
    {"demo", "TwoRooms in minutes on two CPU cores, from data to report",
     "collect train prior prior-quality held-out held-out-pg held-out-gd rollouts geometry "
     "mechanism probe "
     "plan report",
     three, COUNT(three), "env=tworooms",
     /* As many updates as fit into twelve minutes on two cores.  Images only where windows can
      * begin: 56,000 windows, more than the updates draw.  For the same number of windows, twice
      * the updates at half the batch learn more. */
     PRESETS(NULL,
             "preset=small|side=64|every=5|episodes=4000|updates=800|train=train.batch=32|"
             "validate=200|checkpoint=200|held=150|held_K=1,4,16|held_pg_K=1,4|R=16,32,64|rollout_"
             "planners=pg-gn,gn,mppi,cem|"
             "gd_steps=50|"
             "geometry=--anchors 64|probe=--episodes 100|"
             "prior=prior.episodes=1200 prior.updates=400 prior.every=50 prior.patience=3 "
             "prior.hidden=256 prior.batch=256",
             NULL, NULL, NULL)},
    /* experiments for the largest disagreements with the published numbers */
    {"prior-alone", "PushT: does the plan of the prior alone depend on its fit?", PRIOR_ROWS, three,
     COUNT(three), "env=pusht",
     PRESETS(NULL, NULL, NULL, PRIOR_LAPTOP "episodes=4000|updates=13000|" PRIOR_MINUTES(16),
             TINY)},
    {"prior-alone-reacher", "Reacher: the same", PRIOR_ROWS, three, COUNT(three), "env=reacher",
     PRESETS(NULL, NULL, NULL, PRIOR_LAPTOP "episodes=3000|updates=6000|" PRIOR_MINUTES(7.5),
             TINY)},
    {"tworooms-updates", "TwoRooms: LeWM with CEM and GD after few and many updates",
     "collect train budget-cem gd report", by_updates, COUNT(by_updates), "env=tworooms",
     PRESETS(NULL, NULL, NULL,
             "preset=small|side=64|every=5|episodes=4000|updates=4000|seeds=3072,1,2|"
             "train=train.batch=32|" SHORT "minutes=collect:1 train:2.5 budget-cem:6 gd:0.5 "
             "report:0.1",
             TINY)},
};
const int cgs_recipe_count = COUNT(cgs_recipes);

const char *const cgs_preset_names[CGS_PRESETS] = {"paper", "small", "brief", "laptop", "tiny"};

/* in the order in which they run: what is learned soonest comes first */
const cgs_recipe_group cgs_recipe_groups[] = {
    {"main", "the four environments of Table 1", "tworooms reacher cube pusht"},
    {"grids", "the paper's grids at laptop size: references, histories, ablations",
     "reacher-histories cube-references ablations"},
    {"dinowm-mazes", "DINO-WM on frozen features: Wall and both PointMazes",
     "dinowm-wall dinowm-pointmaze-umaze dinowm-pointmaze-medium"},
    {"disagreements", "experiments for the largest disagreements with the published numbers",
     "tworooms-updates prior-alone-reacher prior-alone"},
    {"dinowm", "DINO-WM on frozen features, CLS and patch, in four environments",
     "dinowm-pusht dinowm-wall dinowm-pointmaze-umaze dinowm-pointmaze-medium"},
};
const int cgs_recipe_group_count = COUNT(cgs_recipe_groups);

#define FOUR "pusht cube tworooms reacher"
const cgs_paper_item cgs_paper_items[] = {
    {"Table 1", "success at K = 128 with five planners", FOUR,
     "budget-mppi budget-pg-mppi budget-cem budget-pg-cem gd"},
    {"Table 2", "probes of physical motion, main columns", "pusht reacher", "probe"},
    {"Table 3", "PushT over K", "pusht", "budget-mppi budget-pg-mppi budget-cem budget-pg-cem"},
    {"Table 4", "Cube over K", "cube", "budget-mppi budget-pg-mppi budget-cem budget-pg-cem"},
    {"Table 5", "TwoRooms over K", "tworooms",
     "budget-mppi budget-pg-mppi budget-cem budget-pg-cem"},
    {"Table 6", "Reacher over K", "reacher", "budget-mppi budget-pg-mppi budget-cem budget-pg-cem"},
    {"Table 7", "area under the sweeps over K", FOUR,
     "budget-mppi budget-pg-mppi budget-cem budget-pg-cem gd"},
    {"Table 8", "Reacher: reference and history", "reacher-histories", NULL},
    {"Tables 9-12", "physical identification and complete probes", FOUR, "probe"},
    {"Table 13", "DINO-WM: CLS and patch features, three planners", "dinowm", NULL},
    {"Table 14", "planner time of an episode, DINO-WM against LeWM", "dinowm-pusht", "timing"},
    {"Table 15", "area under the sweeps over iterations", FOUR, "refine"},
    {"Figure 1", "action-latent trajectories and response heat maps, PushT", "pusht", "geometry"},
    {"Figure 3", "contraction of MPPI and samples", "cube", "mechanism"},
    {"Figure 4", "MPPI over K", FOUR, "budget-mppi"},
    {"Figure 5", "three architectures on PushT: success and time", "dinowm-pusht", NULL},
    {"Figures 6, 14", "refinement curves; quality and success of the priors", FOUR,
     "refine prior-quality prior-only"},
    {"Figure 7", "Cube: reference of CGS", "cube-references", NULL},
    {"Figure 8", "Reacher: sweeps under three histories", "reacher-histories", NULL},
    {"Figure 9", "action-effect geometry", FOUR, "geometry"},
    {"Figure 10", "imagined beside simulated frames", "pusht", "decode"},
    {"Figure 11", "training ablations on PushT", "ablations", NULL},
    {"Figure 12", "straightness in training", FOUR, "train"},
    {"Figure 13", "temperature of MPPI", FOUR, "temperature"},
    {"theorems", "every statement checked on random systems, and measured on the models", FOUR,
     "theory"},
    {"held-out", "the second protocol: unseen episodes, solved starts left out, paired", FOUR,
     "held-out held-out-pg held-out-gd"},
    {"rollouts", "planners at the same number of rollouts (not in the paper)", FOUR, "rollouts"},
};
const int cgs_paper_item_count = COUNT(cgs_paper_items);

const cgs_study_row *cgs_study_row_find(const char *id) {
    for (int i = 0; i < cgs_study_row_count; i++)
        if (!strcmp(cgs_study_rows[i].id, id)) return &cgs_study_rows[i];
    return NULL;
}

const cgs_recipe *cgs_recipe_find(const char *name) {
    for (int i = 0; i < cgs_recipe_count; i++)
        if (!strcmp(cgs_recipes[i].name, name)) return &cgs_recipes[i];
    return NULL;
}

const cgs_recipe_group *cgs_recipe_group_find(const char *name) {
    for (int i = 0; i < cgs_recipe_group_count; i++)
        if (!strcmp(cgs_recipe_groups[i].name, name)) return &cgs_recipe_groups[i];
    return NULL;
}
