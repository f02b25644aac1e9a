#!/bin/bash
# expected.sh: makes ../expected anew with the oracle. XFS_DB is the command that runs xfs_db of xfsprogs 7.2
# (default: xfs_db). Needs zstd. What comes out must be read before it is committed: it is the truth of the tests.
#
#   NAME.info     xfs_db -c info, devices called data, log and rt
#   NAME.headers  sb, agf, agi and agfl of every AG
#   NAME.freesp, NAME.frag  xfs_db -c freesp, -c frag
#   log-states.txt  xfs_logprint -t (XFS_LOGPRINT; default: xfs_logprint)
#   NAME.usable   not made here: xfs_spaceman -c 'freesp -s' on the file system as it was mounted to be filled
#   convert.txt   not made here: xfs_db's convert and rtconvert of random bytes to all units
#   NAME.objects  inodes, directory blocks and extent map blocks, each behind a line "# WHAT"
set -euo pipefail
cd "$(dirname "$0")/.."
images=$PWD; out=$PWD/expected; mkdir -p "$out"
XFS_DB=${XFS_DB:-xfs_db}; XFS_LOGPRINT=${XFS_LOGPRINT:-xfs_logprint}; export TZ=UTC LC_ALL=C
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
db() { $XFS_DB -r "${devices[@]}" "$@" data 2>/dev/null | grep -v '^xfs_db' || true; }

for image in "$images"/*.img.zst; do
  name=$(basename "$image" .img.zst)
  case $name in *.rt|*.log) continue;; esac
  rm -f data rt log; devices=()
  zstd -q -d --long=31 -f "$image" -o data
  [ -e "$images/$name.rt.img.zst" ] && zstd -q -d --long=31 -f "$images/$name.rt.img.zst" -o rt && devices+=(-R rt)
  [ -e "$images/$name.log.img.zst" ] && zstd -q -d --long=31 -f "$images/$name.log.img.zst" -o log && devices+=(-l log)
  db -c info > info
  state=$($XFS_LOGPRINT -t $([ -e log ] && echo -l log) data 2>/dev/null | grep -a 'log tail:' | sed 's/^ *//' || true)
  [ -n "$state" ] && echo "$name: $state"
  case $name in v4-*|v5-*) db -c freesp > "$out/$name.freesp"; db -c frag > "$out/$name.frag";; esac
  if grep -q '^meta-data=data' info; then mv info "$out/$name.info"; else continue; fi
  ags=$(sed -n 's/.*agcount=\([0-9]*\),.*/\1/p' "$out/$name.info")
  case $name in v5-default|v4-default|v4-512b|v5-rtgroups|v5-zoned|v5-4kn|v5-stripe|v5-extlog|v4-rt-256k|c10-*|c17-*)
    for ((ag = 0; ag < ags && ag < 4; ag++)); do
      db -c "sb $ag" -c print -c "agf $ag" -c print -c "agi $ag" -c print -c "agfl $ag" -c print
    done > "$out/$name.headers";;
  esac
  # objects: the WHAT of `show`, behind a line "# WHAT"
  case $name in
    v5-default) inodes=(128 131 132 134 816 826 393344 393400); blocks=("49167 dir3" "8869 bmapbtd" "49336 bmapbtd");;
    v4-default) inodes=(128 131 134 817 826 393344 396948); blocks=("24588 dir2" "4605 bmapbtd");;
    v4-512b) inodes=(64 67 68 71); blocks=();;
    v5-rtgroups) inodes=(128 129 130 816 36806 155776 200052); blocks=("24591 dir3" "4754 bmapbtd");;
    v5-zoned) inodes=(128 129 131); blocks=();;
    *) continue;;
  esac
  {
    for ino in "${inodes[@]}"; do echo "# inode $ino"; db -c "inode $ino" -c print; done
    for block in ${blocks[@]+"${blocks[@]}"}; do
      echo "# fsblock ${block% *} --as ${block#* }"; db -c "fsblock ${block% *}" -c "type ${block#* }" -c print
    done
  } > "$out/$name.objects"
done > "$out/log-states.txt"
