#!/usr/bin/env bash
# make image: build/image/fairlead.tar, an OCI image, without a container engine. What is from the same commit and the same
# packages has the same bytes. SOURCE_DATE_EPOCH: the time of its files; the commit's if it is not set.
. "$(dirname "$0")/lib.sh"
scripts/build.sh release fairlead fairlead-gpu-index
revision=unknown
if commit=$(git rev-parse HEAD 2>/dev/null); then
  revision=$commit
  [[ -z $(git status --porcelain --untracked-files=no) ]] || revision+=-dirty
fi
python3 -B scripts/package/make_image.py --build build --output build/image --revision "$revision" --epoch "$(source_epoch)"
