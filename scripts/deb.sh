#!/usr/bin/env bash
# make deb: build/deb/fairlead_VERSION_ARCHITECTURE.deb. SOURCE_DATE_EPOCH as in scripts/image.sh.
. "$(dirname "$0")/lib.sh"
scripts/build.sh release fairlead fairlead-gpu-index
python3 -B scripts/package/make_deb.py --build build --output build/deb --epoch "$(source_epoch)"
