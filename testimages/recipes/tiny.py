#!/usr/bin/env python3
"""tiny.py MOUNT [rt]: few inodes, but every kind of on-disk object, for fuzzing: a file system that is checked in
milliseconds. Large directories are made of hard links to a few files.
"""
import os, subprocess, sys, stat

mnt, rt = sys.argv[1], 'rt' in sys.argv[2:]
bs = os.statvfs(mnt).f_bsize
p = lambda *a: os.path.join(mnt, *a)
def x(f, *cmds):
    args = ['xfs_io', '-x']
    for c in cmds: args += ['-c', c]
    r = subprocess.run(args + [f], capture_output=True, text=True)
    if r.returncode or r.stderr.strip(): print('xfs_io', cmds, f, r.stderr.strip())
def put(path, off=0, data=b''):
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o644); os.pwrite(fd, data, off); os.close(fd)
def holes(path, n):
    fd = os.open(path, os.O_CREAT | os.O_RDWR)
    for i in range(n): os.pwrite(fd, b'%08d' % i, 2 * i * bs)
    os.close(fd)

small = min(bs, 4096)
os.mkdir(p('files'))
linked = [p('files', 'linked_%d' % i) for i in range(6)]
for f in linked: put(f, 0, b'linked')
# directories: in the inode, one block, one leaf, nodes, and a hole in it
os.makedirs(p('dirs', 'deep', 'er'))
for name, n in (('inode', 3), ('block', max(12, small // 64)), ('leaf', max(60, small // 11)), ('node', max(160, small // 6))):
    os.mkdir(p('dirs', name))
    for i in range(n): os.link(linked[i % len(linked)], p('dirs', name, '%s_entry_of_a_directory_%05d' % (name, i)))
for i in range(40, max(60, small // 11) - 10): os.unlink(p('dirs', 'leaf', 'leaf_entry_of_a_directory_%05d' % i))
for n in ('with space', 'esc\x1b[31mred', 'new\nline', 'ümläut', 'x' * 255): put(p('dirs', n))
os.close(os.open(os.path.join(os.fsencode(p('dirs')), b'bad\xff\xfeutf8'), os.O_CREAT))
# files: extents in the inode, in one btree level, in more; holes, unwritten, far
put(p('files', 'one'), 0, b'1' * 3 * small)
holes(p('files', 'few'), 6)
holes(p('files', 'btree'), 40)
holes(p('files', 'btree_2'), max(90, bs // 16 * 2 + 30) if bs <= 1024 else 90)
put(p('files', 'far'), 1 << 40, b'far')
fd = os.open(p('files', 'unwritten'), os.O_CREAT | os.O_RDWR); os.posix_fallocate(fd, 0, 16 * bs); os.pwrite(fd, b'w', 4 * bs); os.close(fd)
os.chown(p('files', 'one'), 1000, 2000); os.chown(p('files', 'few'), 1001, 2000)
for n, m in (('fifo', stat.S_IFIFO), ('chr', stat.S_IFCHR)): os.mknod(p('files', n), m | 0o600, os.makedev(8, 17))
os.symlink('short/target', p('files', 'symlink')); os.symlink('/'.join(['long_component_%03d' % i for i in range(50)]), p('files', 'symlink_remote'))
put(p('files', 'extsize')); x(p('files', 'extsize'), 'extsize %d' % (4 * bs), 'pwrite -q 0 1')
# attributes: in the inode, one leaf, nodes, remote values
for name, n, size in (('sf', 3, 10), ('leaf', 6, small // 12), ('node', 60, small // 24), ('remote', 2, 3 * small)):
    put(p('files', 'attr_' + name))
    for i in range(n):
        try: os.setxattr(p('files', 'attr_' + name), 'user.%s_%03d' % (name, i), b'v' * size)
        except OSError as e: print(name, i, e); break
put(p('files', 'acl')); subprocess.run(['setfacl', '-m', 'u:1000:rw,g:2000:r', p('files', 'acl')])
# sharing, project, free space in pieces
put(p('files', 'shared'), 0, b's' * 8 * bs); put(p('files', 'shared_too')); x(p('files', 'shared_too'), 'reflink %s' % p('files', 'shared'), 'pwrite -q %d %d' % (2 * bs, bs))
os.mkdir(p('project')); x(p('project'), 'chattr +P', 'chproj 42'); put(p('project', 'inherits'), 0, b'p' * bs)
os.mkdir(p('frag'))
for i in range(60): put(p('frag', 'f%02d' % i), 0, b'f' * bs * (1 + i % 3))
for i in range(0, 60, 2): os.unlink(p('frag', 'f%02d' % i))
holes(p('frag', 'free'), 200); os.unlink(p('frag', 'free'))
if rt:
    os.mkdir(p('rt')); x(p('rt'), 'chattr +t')
    info = subprocess.run(['xfs_info', mnt], capture_output=True, text=True).stdout
    ext = int(info.split('realtime')[1].split('extsz=')[1].split()[0])
    put(p('rt', 'one'), 0, b'r' * ext)
    fd = os.open(p('rt', 'unwritten'), os.O_CREAT | os.O_RDWR); os.posix_fallocate(fd, 0, 4 * ext); os.pwrite(fd, b'u', ext); os.close(fd)
    fds = [os.open(p('rt', 'woven_%d' % i), os.O_CREAT | os.O_RDWR) for i in range(2)]
    for k in range(30):
        for fd in fds: os.pwrite(fd, b'%08d' % k, 2 * k * ext); os.fsync(fd)
    for fd in fds: os.close(fd)
    os.unlink(p('rt', 'woven_1'))
    put(p('rt', 'shared')); x(p('rt', 'shared'), 'reflink %s' % p('rt', 'one'))
os.sync()
