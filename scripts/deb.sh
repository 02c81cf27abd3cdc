#!/usr/bin/env bash
# make deb: build/deb/fairlead_VERSION_ARCHITECTURE.deb. SOURCE_DATE_EPOCH as in scripts/image.sh.
. "$(dirname "$0")/lib.sh"
scripts/build.sh release fairlead fairlead-gpu-index
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
python3 -B scripts/package/make_deb.py --build build --output build/deb --epoch "$epoch"
