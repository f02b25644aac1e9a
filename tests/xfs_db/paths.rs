//! Field paths of a structure: every field of a few elements of each array.

use xfsinspect::format::{Body, Context, Node, Type};

/// A path, and whether the field is one that is not shown when everything is printed (padding and such): xfs_db has
/// no name for some of these.
pub type Path = (String, bool);

/// Paths, at most some hundred.
pub fn of(nodes: &[Node], context: &Context, bytes: &[u8]) -> Vec<Path> {
    let mut paths = Vec::new();
    Walk { context, bytes, paths: &mut paths }.nodes(nodes, "");
    paths.truncate(300);
    paths
}

struct Walk<'a> {
    context: &'a Context,
    bytes: &'a [u8],
    paths: &'a mut Vec<Path>,
}

impl Walk<'_> {
    fn nodes(&mut self, nodes: &[Node], prefix: &str) {
        for node in nodes {
            self.node(node, format!("{prefix}{}", node.name));
        }
    }

    fn node(&mut self, node: &Node, name: String) {
        match &node.body {
            Body::Group(parts) => {
                self.nodes(parts, &format!("{name}."));
                self.paths.push((name, node.skip));
            }
            Body::List { index, items } => {
                let last = items.len().saturating_sub(1);
                for i in [0, last / 2, last] {
                    if let Some(item) = items.get(i) {
                        self.nodes(&item.nodes, &format!("{name}[{}].", *index as usize + i));
                    }
                }
                // xfs_db prints the file type of unused space only where a directory block is printed as a whole.
                if last > 0 && last < 40 && node.name != "bu" && node.name != "du" {
                    self.paths.push((format!("{name}[{index}-{}]", *index as usize + last), node.skip));
                }
            }
            Body::Value { index: Some(index), count, .. } if *count > 0 => {
                self.paths.push((format!("{name}[{}]", index + count / 2), node.skip));
                self.paths.push((format!("{name}[{index}-{}]", index + count / 2), node.skip));
                self.paths.push((name, node.skip));
            }
            Body::Records { fields, count, index, .. } if *count > 0 => {
                let shown = fields.iter().filter(|field| (field.exists)(self.context, self.bytes));
                for field in shown {
                    self.paths.push((format!("{name}[{}].{}", index + count / 2, field.name), field.skip));
                    self.paths.push((format!("{name}[{index}-{}].{}", index + count - 1, field.name), field.skip));
                }
                self.paths.push((format!("{name}[{}]", index + count - 1), node.skip));
                self.paths.push((name, node.skip));
            }
            _ => self.paths.push((name, node.skip)),
        }
    }
}

/// Does xfs_db answer worse here, by one of the quirks that docs/differences.md lists? It has no `filetype` in V4
/// directories, no fields for V4 symlink targets, prints the bytes of `fill` raw, and loses `onlink` on V4.
pub fn we_know_better(kind: Type, v5: bool, path: &str) -> bool {
    match kind {
        Type::Dir3 => !v5 && path.ends_with(".filetype"),
        Type::Symlink => !v5,
        Type::Dqblk => path.starts_with("fill"),
        Type::Inode => !v5 && matches!(path, "core" | "core.onlink"),
        _ => false,
    }
}
