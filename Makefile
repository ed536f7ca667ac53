# cgs - build.  `make` needs no options; it prints what it found.
#
#   make            library and program into build/
#   make demo       TwoRooms from data to report.html, minutes on two cores (DEMO=folder)
#   make test       the tests, side by side (installs missing Debian packages first)
#   make asan tsan  the tests under sanitizers
#   make test-gpu   the tests that need a GPU
#   make test-isas test-emulated   the tests under every instruction set; on other processors
#   make bench      speed, as JSON lines
#   make install    program, library, headers, man page, completion; PREFIX=/usr/local,
#                   LIBDIR=PREFIX/lib, PYTHONDIR=PREFIX/share/cgs/python, DESTDIR=
#   make deb        Debian packages into build/deb (scripts/setup.sh deb installs the tools)
#   make wheel      a Python wheel with the library into build/wheel
#   make dist       a relocatable folder with the shared libraries it needs
#   make dist-gpu   the same with test_gpu, for scripts/gpu_check.sh on a machine with a GPU
#
# Variables: CC, B (build folder), V=1 (show commands), WERROR=1, SAN=..., ONEDNN=0 (own
# matrix products), CROSS=aarch64-linux-gnu SYSROOT=DIR (for another machine, with its packages
# from DIR: scripts/aarch64.sh), MUJOCO=0 (without Reacher, Cube and PointMaze) or MUJOCO=DIR (a
# MuJoCo with DIR/include and DIR/lib), LIBAV=0 SNAPPY=0 (cgs data convert without videos, without
# Snappy), CUDA=1 (GPU code, though no GPU is here) or CUDA=0 (none, though one is), CLOCKS=1 (long
# kernels print where their time goes).  Where these differ from what a build folder was made with,
# what depends on them is made again.

ifneq ($(filter default undefined,$(origin CC)),)
CC     := $(if $(CROSS),$(CROSS)-)gcc
endif
PKG_CONFIG := pkg-config
ifneq ($(CROSS),)
override SYSROOT := $(abspath $(SYSROOT))
override CC := $(CC) --sysroot=$(SYSROOT)
AR     := $(CROSS)-ar
PKG_CONFIG := env PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) \
  PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/$(CROSS)/pkgconfig:$(SYSROOT)/usr/share/pkgconfig pkg-config
CUDA   ?= 0
endif
B      ?= build$(if $(CROSS),/$(CROSS))
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
PYTHONDIR ?= $(PREFIX)/share/cgs/python
ONEDNN ?= 1
MUJOCO ?= 1
NVCC   ?= $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
NVCC   := $(NVCC)
# nvcc may be a wrapper or a link: it is asked where its headers are
CUDA_HOME := $(if $(NVCC),$(realpath $(shell $(NVCC) --dryrun -c src/ops/cuda/rows.cu 2>&1 | \
               sed -n 's/^.* TOP=//p')))
CUDA_H := $(if $(CUDA_HOME),$(wildcard $(CUDA_HOME)/include/cuda_runtime_api.h))
# kernels take minutes to compile: where a GPU runs them, or for a goal that is about them
GPU    := $(firstword $(wildcard /dev/nvidiactl /dev/dxg /proc/driver/nvidia/version) \
            $(filter dist-gpu test-gpu,$(MAKECMDGOALS)))
# said by hand, no CUDA is also no emulated CUDA
EMULATE := $(if $(and $(CUDA_H),$(filter x86_64,$(shell uname -m))),$(if $(SAN)$(filter 0,$(CUDA)),,1))
CUDA   ?= $(if $(and $(CUDA_H),$(GPU)),1,0)

# one short line a command; V=1 shows them whole
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $@;)

# ---- what is here ------------------------------------------------------------------
# a bare \# inside $(shell) means different things to different makes
HASH    := \#
COMMA   := ,
PKGS    := hdf5 libcjson libpng zlib blosc liblz4 libzstd lapacke openblas
MISSING := $(shell for p in $(PKGS) cmocka; do $(PKG_CONFIG) --exists $$p || echo $$p; done; \
             for h in dnnl.h chipmunk/chipmunk.h; do echo "$(HASH)include <$$h>" | \
               $(CC) -E -x c - >/dev/null 2>&1 || echo $$h; done)

VERSION := $(shell sed -n 's/^\#define CGS_VERSION "\(.*\)"/\1/p' include/cgs/cgs.h)
SOVER   := 2
COMMIT  := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)

CPPFLAGS += -Iinclude -Isrc -D_POSIX_C_SOURCE=200809L $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
CFLAGS   ?= -O3 -g
# no -ffast-math anywhere: it turns isfinite(x) into 1.  No fused multiply-add where nobody asks for
# it: compilers differ in what they do unasked, and trajectories must not
CFLAGS   += -std=c11 -fPIC -fvisibility=default -fno-math-errno -fno-trapping-math \
            -ffp-contract=off \
            -Wall -Wextra -Wpedantic -Wshadow -Wno-unknown-pragmas -fopenmp-simd -pthread
LDLIBS   += $(shell $(PKG_CONFIG) --libs $(PKGS) 2>/dev/null) -lchipmunk -lm -lpthread
ifeq ($(ONEDNN),1)
LDLIBS   += -ldnnl -lgomp
endif
ifneq ($(filter-out 0 1,$(MUJOCO)),)
CPPFLAGS += -isystem $(MUJOCO)/include
LDLIBS   += -L$(MUJOCO)/lib -Wl,-rpath,$(MUJOCO)/lib
endif
MJ_FOUND := $(if $(filter 0,$(MUJOCO)),,$(shell printf '$(HASH)include <mujoco/mujoco.h>\nmjVERSION_HEADER\n' | \
              $(CC) $(CPPFLAGS) -E -P -x c - 2>/dev/null | tail -1))
ifneq ($(MJ_FOUND),)
CPPFLAGS += -DCGS_WITH_MUJOCO
LDLIBS   += -lmujoco
endif
# what cgs data convert reads more with; without them it says what is missing
LIBAV_PKGS := libavformat libavcodec libswscale libavutil
LIBAV    ?= $(shell $(PKG_CONFIG) --exists $(LIBAV_PKGS) && echo 1)
SNAPPY   ?= $(shell $(PKG_CONFIG) --exists snappy && echo 1)
ifeq ($(LIBAV),1)
# loaded when a video is opened: it brings a hundred libraries along
CPPFLAGS += -DCGS_WITH_LIBAV $(shell $(PKG_CONFIG) --cflags $(LIBAV_PKGS))
endif
ifeq ($(SNAPPY),1)
CPPFLAGS += -DCGS_WITH_SNAPPY $(shell $(PKG_CONFIG) --cflags snappy)
LDLIBS   += $(shell $(PKG_CONFIG) --libs snappy)
endif
X86      := $(filter x86_64-%,$(shell $(CC) -dumpmachine))
# gcc 12 for aarch64 breaks down over loops with fmax; "omp simd" is not concerned
ifeq ($(if $(X86),,$(findstring gcc,$(CC)))$(firstword $(subst ., ,$(shell $(CC) -dumpversion))),gcc12)
CFLAGS   += -fno-tree-loop-vectorize
endif
ifeq ($(WERROR),1)
CFLAGS   += -Werror
endif
ifneq ($(SAN),)
CFLAGS   += -fsanitize=$(SAN) -fno-omit-frame-pointer -O1
LDFLAGS  += -fsanitize=$(SAN)
endif
LDFLAGS  += -pthread

# what every object and program is made with; few of them know of the commit and of CUDA
MADE_WITH := $(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(LDLIBS)
# The runtime is linked in and finds the driver at run time; cuBLASLt is loaded when a GPU is
# opened.  So one binary runs with and without CUDA on the machine.
ifeq ($(CUDA),1)
LDLIBS    += -L$(CUDA_HOME)/lib64 -lcudart_static -ldl -lrt
NVFLAGS   := -std=c++17 -O3 -Iinclude -Isrc -gencode arch=compute_80,code=sm_80 \
             -gencode arch=compute_90,code=[sm_90,compute_90] --expt-relaxed-constexpr \
             -Xcompiler -fPIC,-Wall,-Wextra,-Wno-unused-parameter,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics \
             $(shell $(NVCC) --help | grep -q compress-mode && echo --compress-mode=size) \
             $(if $(filter 1,$(WERROR)),-Werror all-warnings)
endif
CUDA_DEF := $(if $(filter 1,$(CLOCKS)),-DCGS_CLOCKS)
NVFLAGS  += $(CUDA_DEF)

# ---- sources -----------------------------------------------------------------------
# folders named cli, cuda and simd are built in their own ways below
C_SRC   := $(sort $(shell find src -name '*.c'))
LIB_SRC := $(foreach f,$(C_SRC),$(if $(filter cli cuda simd,$(subst /, ,$(f))),,$(f)))
LIB_SRC := $(filter-out src/ops/cpu/$(if $(filter 1,$(ONEDNN)),without_)onednn.c,$(LIB_SRC))
MJ_SRC  := $(addprefix src/env/,mujoco_env.c mujoco_world.c mujoco_view.c mujoco_models.c mjcf_cube.c cube.c \
             cube_arm.c reacher.c pointmaze.c policy_cube.c policy_reacher.c)
ifeq ($(MJ_FOUND),)
LIB_SRC := $(filter-out $(MJ_SRC),$(LIB_SRC))
endif
CLI_SRC := $(filter src/cli/%,$(C_SRC))
CU_SRC  := $(sort $(shell find src -name '*.cu'))
CUH_SRC := $(sort $(shell find src -name '*.cuh'))
GPU_SRC := $(foreach f,$(C_SRC),$(if $(filter cuda,$(subst /, ,$(f))),$(f)))
# loops that are compiled once per instruction set and chosen at run time
SIMD_SRC := $(sort $(wildcard src/ops/cpu/simd/*.c))
ISAS     := base $(if $(X86),v3 v4)
FLAGS_base := $(if $(X86),,-ffp-contract=fast)
FLAGS_v3   := -march=x86-64-v3 -ffp-contract=fast
FLAGS_v4   := -march=x86-64-v4 -mprefer-vector-width=512 -ffp-contract=fast

# ... and those of them whose results must not depend on the choice
EXACT_SRC := $(sort $(wildcard src/env/simd/*.c))

LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o) \
           $(if $(filter 1,$(CUDA)),$(GPU_SRC:%.c=$(B)/%.o) $(CU_SRC:%.cu=$(B)/%.cu.o)) \
           $(foreach i,$(ISAS),$(SIMD_SRC:%.c=$(B)/%.$(i).o) $(EXACT_SRC:%.c=$(B)/%.$(i).o))
CLI_OBJ := $(CLI_SRC:%.c=$(B)/%.o)
# tests/LAYER/test_NAME.c becomes BUILD/tests/test_NAME; the other files are linked into all of them
TEST_SRC := $(sort $(wildcard tests/*/test_*.c))
TEST_BIN := $(addprefix $(B)/tests/,$(notdir $(TEST_SRC:.c=)))
TEST_HELP := $(filter-out $(TEST_SRC),$(wildcard tests/support/*.c tests/cuda/*.c))
TEST_HELP_OBJ := $(TEST_HELP:%.c=$(B)/%.o)

.PHONY: always all demo test test-gpu test-isas test-emulated tests asan tsan bench install deb wheel dist \
  dist-gpu clean deps found
all: found $(B)/made/options $(B)/cgs $(B)/libcgs.so.$(VERSION)

found:
	@$(if $(strip $(MISSING)),echo "missing: $(strip $(MISSING)) (run scripts/setup.sh)"; exit 1,\
	  echo "cgs $(VERSION): $(CC), $(foreach p,$(PKGS),$(p) $(shell $(PKG_CONFIG) --modversion $(p)),)\
	  chipmunk, oneDNN $(if $(filter 1,$(ONEDNN)),yes,no),\
	  videos $(if $(filter 1,$(LIBAV)),yes,no)$(COMMA) snappy $(if $(filter 1,$(SNAPPY)),yes,no)$(COMMA)\
	  mujoco $(or $(MJ_FOUND),not found: no Reacher Cube PointMaze),\
	  CUDA $(if $(filter 1,$(CUDA)),$(NVCC),$(if $(CUDA_H),no: nvcc is here and no GPU$(COMMA) CUDA=1 builds it,no))")

$(B)/libcgs.a: $(LIB_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

# the shared library shows what the public headers declare and nothing else
$(B)/cgs.map: include/cgs/cgs.h include/cgs/env.h
	@mkdir -p $(@D)
	@{ echo 'CGS_$(SOVER) { global:'; sed -n 's/.*\b\(cgs_[a-z0-9_]*\)(.*/  \1;/p' $^ | sort -u; \
	   echo '  local: *; };'; } > $@

$(B)/libcgs.so.$(VERSION): $(LIB_OBJ) $(B)/cgs.map
	$(call say,LD)$(CC) -shared -Wl,-soname,libcgs.so.$(SOVER) -Wl,--version-script=$(B)/cgs.map \
	  $(LDFLAGS) -o $@ $(LIB_OBJ) $(LDLIBS)

$(B)/cgs: $(CLI_OBJ) $(B)/libcgs.a
	$(call say,LD)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/%.o: %.c $(B)/made/flags
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(GPU_SRC:%.c=$(B)/%.o): CPPFLAGS += $(CUDA_DEF) -isystem $(CUDA_HOME)/include
$(GPU_SRC:%.c=$(B)/%.o) $(CU_SRC:%.cu=$(B)/%.cu.o): $(B)/made/cuda
$(B)/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(call say,NV)$(NVCC) $(NVFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

# wgmma exists on compute capability 9.0 alone (sm_90a): what is in a folder sm90 is compiled for
# it; other targets get kernels that do nothing
SM90_OBJ := $(foreach f,$(CU_SRC),$(if $(filter sm90,$(subst /, ,$(f))),$(f:%=$(B)/%.o)))
$(SM90_OBJ): NVFLAGS := $(filter-out -gencode arch=compute_%,$(NVFLAGS)) \
  -gencode arch=compute_80,code=[sm_80,compute_80] -gencode arch=compute_90a,code=sm_90a

$(B)/tests/probe_%: tests/cuda/probe_%.cu $(B)/made/cuda
	@mkdir -p $(@D)
	$(call say,NV)$(NVCC) $(filter-out -gencode arch=compute_%,$(NVFLAGS)) \
	  -gencode arch=compute_90a,code=sm_90a -o $@ $<

# random numbers and sums of costs are the same bits as on a CPU: no fused multiply-add
$(B)/src/ops/cuda/directions.cu.o $(B)/src/plan/cuda/refine.cu.o $(B)/src/plan/cuda/gauss_newton.cu.o \
  $(B)/src/rollout/cuda/rows.cu.o: \
  NVFLAGS += -fmad=false

define simd_rule
$(B)/src/ops/cpu/simd/%.$(1).o: src/ops/cpu/simd/%.c $(B)/made/flags
	@mkdir -p $$(@D)
	$$(call say,CC)$$(CC) $$(CPPFLAGS) $$(CFLAGS) $$(FLAGS_$(1)) -DCGS_ISA=$(1) -MMD -MP -c -o $$@ $$<

$(B)/src/env/simd/%.$(1).o: src/env/simd/%.c $(B)/made/flags
	@mkdir -p $$(@D)
	$$(call say,CC)$$(CC) $$(CPPFLAGS) $$(CFLAGS) $$(FLAGS_$(1)) -ffp-contract=off -DCGS_ISA=$(1) -MMD -MP -c -o $$@ $$<
endef
$(foreach i,$(ISAS),$(eval $(call simd_rule,$(i))))

# the commit is stored in results and datasets; only this object depends on it
$(B)/src/core/build.o: CPPFLAGS += -DCGS_COMMIT='"$(COMMIT)"'
$(B)/src/core/build.o: $(B)/made/commit
# these tables alone know whether there are GPUs
GPU_TABLES := src/ops/device.c src/plan/planner_kernels.c src/rollout/rollout_kernels.c
$(GPU_TABLES:%.c=$(B)/%.o): CPPFLAGS += $(if $(filter 1,$(CUDA)),-DCGS_WITH_CUDA)
$(GPU_TABLES:%.c=$(B)/%.o): $(B)/made/gpu

# what kinds of objects are made with, for the rules of made/NAME below
MADE_flags  := $(MADE_WITH)
MADE_options := CC='$(CC)' CUDA=$(CUDA) ONEDNN=$(ONEDNN) MUJOCO=$(MUJOCO) SAN=$(SAN) WERROR=$(WERROR) \
  LIBAV=$(LIBAV) SNAPPY=$(SNAPPY)
MADE_commit := $(COMMIT)
MADE_gpu    := CUDA=$(CUDA)
MADE_cuda   := $(MADE_WITH) $(NVCC) $(NVFLAGS)

# ---- tests -------------------------------------------------------------------------
$(B)/tests/%.o: CPPFLAGS += -Itests/support
define test_rule
$(B)/tests/$(notdir $(1)): $(B)/$(1).o $(TEST_HELP_OBJ) $(B)/libcgs.a
	$$(call say,LD)$$(CC) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS) -lcmocka
endef
$(foreach t,$(TEST_SRC:.c=),$(eval $(call test_rule,$(t))))

# these count what the library allocates
$(addprefix $(B)/tests/,test_planners test_api test_onednn test_tape test_segments): LDFLAGS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc

# The kernels translated to C++ and run thread by thread on the CPU, which needs CUDA's headers
# and nothing else of it: test_gpu for machines without a GPU (tests/emulate/emulate.h).
# It brings the GPU's share of the library along, which the library beside it need not have.
E       := $(B)/emulate
EMU_CU  := $(CU_SRC:%=$(E)/%)
EMU_C   := $(patsubst %.c,$(E)/%.o,$(filter-out %/gemm.c,$(GPU_SRC)) $(GPU_TABLES))
EMU_OBJ := $(EMU_CU:%=%.o) $(patsubst %.cpp,$(E)/%.o,$(wildcard tests/emulate/*.cpp))
$(E)/translated: tests/emulate/translate.py $(CU_SRC) $(CUH_SRC)
	@mkdir -p $(E)
	$(call say,PY)python3 $< src $(E)/src && touch $@
$(EMU_CU) $(CUH_SRC:%=$(E)/%): $(E)/translated ;

EMU_FLAGS := -std=c++17 -O2 -g -ffp-contract=off -fno-threadsafe-statics -w -MMD -MP \
  -Itests/emulate/include -Itests/emulate -I$(E)/src -Isrc -Iinclude -isystem $(CUDA_HOME)/include
MADE_emulate := $(CXX) $(EMU_FLAGS)
$(EMU_OBJ): $(B)/made/emulate
$(EMU_C): $(B)/made/flags
$(E)/%.cu.o: $(E)/%.cu
	$(call say,C++)$(CXX) $(EMU_FLAGS) -c -x c++ -o $@ $<
$(E)/%.o: %.cpp
	@mkdir -p $(@D)
	$(call say,C++)$(CXX) $(EMU_FLAGS) -c -o $@ $<
$(EMU_C): CPPFLAGS += -DCGS_WITH_CUDA -isystem $(CUDA_HOME)/include
$(EMU_C): $(E)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
$(E)/test_gpu: $(B)/tests/cuda/test_gpu.o $(TEST_HELP_OBJ) $(EMU_OBJ) $(EMU_C) $(B)/libcgs.a
	$(call say,LD)$(CXX) $(LDFLAGS) -o $@ $^ $(filter-out -lcudart%,$(LDLIBS)) -ldl -lcmocka

# made/NAME holds MADE_NAME, and is written, so that all that needs it is made again, when that has changed
made_now = printf '%s\n' '$(subst ','\'',$(MADE_$(1)))'
define made_rule
$(B)/made/$(1): $(shell $(made_now) | cmp -s - $(B)/made/$(1) 2>/dev/null || echo always)
	@mkdir -p $$(@D)
	@$$(call made_now,$(1)) > $$@
endef
$(foreach name,flags options commit gpu cuda emulate,$(eval $(call made_rule,$(name))))

.SECONDARY:
tests: $(TEST_BIN) $(B)/cgs $(B)/libcgs.so.$(VERSION) # scripts among the tests run these two

deps:
	@$(if $(strip $(MISSING)),scripts/setup.sh,true)

# a second make, because MISSING was computed before the packages were there
# the commands that people type first use all cores; -j given by hand is obeyed
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null || echo 2))

# the emulator is built by its test, on half of the cores, while other tests run
HALF = $(shell expr \( $$(nproc 2>/dev/null || echo 2) + 1 \) / 2)
test: export EMULATOR = $(if $(EMULATE),$(MAKE) --no-print-directory -j$(HALF) $(E)/test_gpu,no)
test: deps
	@$(MAKE) --no-print-directory $(JOBS) all tests
	@tests/run.sh $(filter -j%,$(MAKEFLAGS)) $(B)

# every test program under each instruction set of this machine, and a selection on processors
# that it is not, which QEMU plays
test-isas: deps
	@$(MAKE) --no-print-directory $(JOBS) all $(TEST_BIN)
	@tests/isas.sh $(B)

test-emulated: deps
	@scripts/aarch64.sh $(B)/aarch64-root
	@$(MAKE) --no-print-directory $(JOBS) all $(TEST_BIN)
	@$(MAKE) --no-print-directory $(JOBS) CROSS=aarch64-linux-gnu CC=aarch64-linux-gnu-gcc \
	  SYSROOT=$(B)/aarch64-root B=$(B)/aarch64 CUDA=0 all tests
	@scripts/emulated_cpus.sh $(B) $(B)/aarch64 $(B)/aarch64-root

test-gpu: deps
	@$(MAKE) --no-print-directory CUDA=$(CUDA) $(B)/tests/test_gpu
	$(B)/tests/test_gpu

asan: deps
	@$(MAKE) --no-print-directory B=$(B)/asan CUDA=0 SAN=address,undefined $(JOBS) all tests
	@tests/run.sh $(B)/asan

tsan: deps
	@$(MAKE) --no-print-directory B=$(B)/tsan CUDA=0 CC=clang SAN=thread ONEDNN=0 $(JOBS) all tests
	@tests/run.sh $(B)/tsan

# the first command on a fresh machine: installs what is missing, builds, runs
DEMO ?= runs/demo
demo: deps
	@$(MAKE) --no-print-directory $(JOBS) all
	$(B)/cgs reproduce demo --out $(DEMO)

bench: all
	$(B)/cgs bench all --json

# ---- packaging ---------------------------------------------------------------------
$(B)/cgs.1: $(B)/cgs
	$(call say,MAN)$(B)/cgs help --man > $@.tmp && mv $@.tmp $@

COMPLETIONS := $(B)/cgs.bash $(B)/cgs.zsh $(B)/cgs.fish
$(COMPLETIONS): $(B)/cgs.%: $(B)/cgs
	$(call say,HELP)$(B)/cgs help --$* > $@.tmp && mv $@.tmp $@

# where things go; DESTDIR before it for packagers
at := $(DESTDIR)$(PREFIX)

define PC
prefix=$(PREFIX)
libdir=$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))
includedir=$${prefix}/include

Name: cgs
Description: latent world models that are easy to plan with
Version: $(VERSION)
Libs: -L$${libdir} -lcgs
Libs.private: -pthread $(LDLIBS)
Cflags: -I$${includedir}
endef
export PC

install: all $(B)/libcgs.a $(B)/cgs.1 $(COMPLETIONS)
	install -d $(at)/bin $(DESTDIR)$(LIBDIR)/pkgconfig $(at)/include/cgs $(at)/share/man/man1 \
	  $(at)/share/bash-completion/completions $(at)/share/zsh/site-functions \
	  $(at)/share/fish/vendor_completions.d $(DESTDIR)$(PYTHONDIR)/cgs
	install -m 755 $(B)/cgs $(at)/bin/cgs
	install -m 644 include/cgs/cgs.h include/cgs/env.h $(at)/include/cgs
	install -m 755 $(B)/libcgs.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libcgs.so.$(VERSION)
	ln -sf libcgs.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libcgs.so.$(SOVER)
	ln -sf libcgs.so.$(SOVER) $(DESTDIR)$(LIBDIR)/libcgs.so
	install -m 644 $(B)/libcgs.a $(DESTDIR)$(LIBDIR)/libcgs.a
	@echo "$$PC" > $(DESTDIR)$(LIBDIR)/pkgconfig/cgs.pc
	install -m 644 $(B)/cgs.1 $(at)/share/man/man1/cgs.1
	install -m 644 $(B)/cgs.bash $(at)/share/bash-completion/completions/cgs
	install -m 644 $(B)/cgs.zsh $(at)/share/zsh/site-functions/_cgs
	install -m 644 $(B)/cgs.fish $(at)/share/fish/vendor_completions.d/cgs.fish
	install -m 644 python/cgs/*.py python/cgs/py.typed $(DESTDIR)$(PYTHONDIR)/cgs/

deb:
	scripts/deb.sh $(VERSION) $(B)/deb

wheel: all
	scripts/wheel.sh $(B)/libcgs.so.$(VERSION) libcgs.so.$(SOVER) $(B)/wheel

# Debian's shared HDF5 brings curl, Kerberos and LDAP along (16 MiB); the archive of 1.10 does not.
# What it wants itself is written beside it, and of that only what is used is linked.
HDF5_A := $(firstword $(wildcard $(patsubst -L%,%/libhdf5.a,$(shell \
            $(PKG_CONFIG) --libs-only-L hdf5 2>/dev/null))))
ifneq ($(HDF5_A),)
HDF5_LINK := $(HDF5_A) -Wl,--push-state,--as-needed $(or $(shell \
  sed -n 's/^ *Extra libraries: *//p' $(HDF5_A:.a=.settings) 2>/dev/null),-lsz) -Wl,--pop-state
endif
DIST_LIBS = $(HDF5_LINK) $(filter-out $(if $(HDF5_A),-lhdf5%),$(LDLIBS)) -ldl
$(B)/dist/cgs: $(CLI_OBJ) $(B)/libcgs.a
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(LDFLAGS) -o $@ $^ $(DIST_LIBS)

$(B)/dist/test_gpu: $(B)/tests/cuda/test_gpu.o $(TEST_HELP_OBJ) $(B)/libcgs.a
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(LDFLAGS) -o $@ $^ $(DIST_LIBS) -lcmocka

dist: all $(B)/dist/cgs
	scripts/dist.sh $(B)/cgs-$(VERSION)-$(shell uname -m) $(B)/dist/cgs

PROBES := $(B)/tests/probe_wgmma $(B)/tests/probe_cluster
dist-gpu: all $(B)/dist/cgs $(B)/dist/test_gpu $(PROBES)
	scripts/dist.sh $(B)/cgs-$(VERSION)-gpu $(B)/dist/cgs $(B)/dist/test_gpu $(PROBES)

clean:
	rm -rf $(B)

-include $(shell find $(B) -path '*-root' -prune -o -name '*.d' -type f -print 2>/dev/null)
