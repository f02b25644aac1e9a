#!/usr/bin/env python3
"""Makes rt/grown-then-crashed.img: a file system of 4 AGs, grown to 8 and shut down with everything in the log only.

Root, loop devices and mkfs.xfs 7.2 are needed: grown.py IMAGE MOUNTPOINT
"""
import fcntl, os, struct, subprocess, sys

image, mount = sys.argv[1:]
GROWFS_DATA, GOINGDOWN = 0x4010586e, 0x8004587d
env = dict(os.environ, TEST_DIR='1', TEST_DEV='1', QA_CHECK_FS='1')  # below 300 MB
subprocess.run(['truncate', '-s', '512M', image], check=True)
subprocess.run(['mkfs.xfs', '-q', '-d', 'size=256m,agcount=4', '-m', 'reflink=0,rmapbt=0', '-i', 'exchange=0',
                '-n', 'parent=0', '-l', 'size=16m', image], check=True, env=env)
subprocess.run(['mount', '-o', 'loop', image, mount], check=True)
root = os.open(mount, os.O_RDONLY)
fcntl.ioctl(root, GROWFS_DATA, struct.pack('QI4x', 512 * 256, 25))
for i in range(40):
    os.mkdir(f'{mount}/d{i}')
    open(f'{mount}/d{i}/f', 'w').write('x' * 100)
fcntl.ioctl(root, GOINGDOWN, struct.pack('I', 1))  # the log is written, nothing else
os.close(root)
subprocess.run(['umount', mount])
