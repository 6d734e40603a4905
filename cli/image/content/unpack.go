package content

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/slipway-platform/slipway/internal/archive"
)

// Prefixes of marker files in a layer. A whiteout file removes a file in lower layers. An opaque
// file removes the content of its directory in lower layers.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// unpacker unpacks an image's layers from the last to the first. It skips entries that a later
// layer has written or removed, so that it never needs to remove files from the disk.
type unpacker struct {
	*extract
	wants []*want
	roots map[string]*os.Root
	// paths contains the paths that later layers have written or removed. hidden contains the
	// directories whose content in lower layers is removed.
	paths, hidden map[string]bool
	// links maps each hard link target in the current layer to the names of its links.
	links map[string][]string
	// modes contains the modes of directories. They are set at the end, because a mode can prevent
	// the unpacker from writing to a directory.
	modes []directoryMode
}

type directoryMode struct {
	root *os.Root
	name string
	mode fs.FileMode
}

// unpack writes the entries that wants selects. Later layers take precedence.
func (e *extract) unpack(layers []v1.Layer, wants []*want) (err error) {
	u := &unpacker{extract: e, wants: wants, roots: map[string]*os.Root{}, paths: map[string]bool{}, hidden: map[string]bool{}}
	defer func() {
		for _, root := range u.roots {
			err = errors.Join(err, root.Close())
		}
	}()
	for _, w := range wants {
		if u.roots[w.directory] != nil {
			continue
		}
		if u.roots[w.directory], err = os.OpenRoot(w.directory); err != nil {
			return fmt.Errorf("open directory: %w", err)
		}
	}
	for _, layer := range slices.Backward(layers) {
		if err := u.layer(layer); err != nil {
			return err
		}
		if u.complete() {
			break
		}
	}
	for _, directory := range slices.Backward(u.modes) {
		if err := directory.root.Chmod(directory.name, directory.mode); err != nil {
			return fmt.Errorf("set directory mode: %w", err)
		}
	}
	for _, w := range wants {
		if !w.matched && w.source != "." {
			return fmt.Errorf("the image does not have /%s", w.source)
		}
	}
	return nil
}

// complete reports whether all wants are single files that have been written.
func (u *unpacker) complete() bool {
	return !slices.ContainsFunc(u.wants, func(w *want) bool { return !w.single || !w.matched })
}

// layer writes the entries of a layer.
func (u *unpacker) layer(layer v1.Layer) error {
	removed, emptied := []string{}, []string{}
	u.links = map[string][]string{}
	err := each(layer, func(name string, header *tar.Header, content io.Reader) error {
		directory, base := path.Split(name)
		switch {
		case base == opaque:
			emptied = append(emptied, path.Clean(directory))
		case strings.HasPrefix(base, whiteout):
			removed = append(removed, path.Join(directory, strings.TrimPrefix(base, whiteout)))
		case !u.isCovered(name):
			u.paths[name] = true
			u.hidden[name] = header.Typeflag != tar.TypeDir
			return u.entry(name, header, content)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range removed {
		u.paths[name], u.hidden[name] = true, true
	}
	for _, name := range emptied {
		u.hidden[name] = true
	}
	if len(u.links) == 0 {
		return nil
	}
	err = each(layer, func(name string, header *tar.Header, content io.Reader) error {
		names := u.links[name]
		if len(names) == 0 || header.Typeflag != tar.TypeReg {
			return nil
		}
		delete(u.links, name)
		return u.files(names, header, content)
	})
	for target, names := range u.links {
		fmt.Fprintf(u.ErrOut, "warning: omitted %q: it is linked to %q, which is not a file of its layer\n", names, target)
	}
	return err
}

// each calls do for each entry of a layer. It reads the layer to its end, so that its digest is
// verified.
func each(layer v1.Layer, do func(name string, header *tar.Header, content io.Reader) error) error {
	digest, err := layer.Digest()
	if err != nil {
		return err
	}
	content, err := layer.Uncompressed()
	if err != nil {
		return explain("read layer", digest.String(), err)
	}
	defer content.Close()
	err = archive.Walk(content, func(header *tar.Header, content io.Reader) error {
		return do(inside(header.Name), header, content)
	})
	if err != nil {
		return fmt.Errorf("read layer %q: %w", digest, err)
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return fmt.Errorf("read layer %q: %w", digest, err)
	}
	return nil
}

// isCovered reports whether a path has already been written or removed by a later layer, or by an
// earlier entry in this layer.
func (u *unpacker) isCovered(name string) bool {
	if u.paths[name] {
		return true
	}
	for at := name; at != "."; {
		if at = path.Dir(at); u.hidden[at] {
			return true
		}
	}
	return false
}

// entry writes an entry to its destinations. For a hard link, it only adds the link to links.
func (u *unpacker) entry(name string, header *tar.Header, content io.Reader) error {
	places := u.places(name)
	for _, p := range places {
		if p.want.single && header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeLink {
			if header.Typeflag == tar.TypeSymlink {
				return fmt.Errorf("is a link to %q: use that path", header.Linkname)
			}
			return errors.New("is not a file: use --path")
		}
		p.want.matched = true
		if u.dryRun {
			fmt.Fprintln(u.Out, printers.EscapeTerminal(fmt.Sprintf("%s -> %s", name, path.Join(p.want.directory, p.name))))
		}
	}
	if len(places) == 0 || u.dryRun {
		return nil
	}
	switch header.Typeflag {
	case tar.TypeReg:
		return u.files([]string{name}, header, content)
	case tar.TypeLink:
		// Reread the content later, because the link's target might not be selected, or a later
		// layer might have replaced it.
		target := inside(header.Linkname)
		u.links[target] = append(u.links[target], name)
		return nil
	case tar.TypeDir, tar.TypeSymlink:
		for _, p := range places {
			if err := u.special(p, header); err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Fprintf(u.ErrOut, "warning: omitted %q: it is a device or a pipe\n", name)
	return nil
}
