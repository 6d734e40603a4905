package rsync

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// byTar copies files in a tar archive. tar creates or unpacks the archive in the container.
func (s *sync) byTar(ctx context.Context) error {
	if s.from.pod != "" {
		return s.download(ctx)
	}
	return s.upload(ctx)
}

// upload sends the local directory as a tar archive. tar unpacks the archive in the container.
func (s *sync) upload(ctx context.Context) error {
	// The archive contains no owners, and no entry for the destination itself, because another user
	// might own the destination.
	unpack := []string{"/bin/sh", "-c", `mkdir -p "$0" && exec tar -C "$0" -xof -`, inside(s.to.path)}
	reader, writer := io.Pipe()
	names := map[string]bool{}
	work, running := errgroup.WithContext(ctx)
	work.Go(func() error {
		err := s.pack(writer, names)
		writer.CloseWithError(err)
		return err
	})
	work.Go(func() error {
		err := s.in(running, unpack, genericiooptions.IOStreams{In: reader, Out: io.Discard, ErrOut: s.ErrOut})
		if err != nil {
			err = fmt.Errorf("unpack in the container: %w", err)
		}
		reader.CloseWithError(err) // makes pack return the same error
		return err
	})
	if err := work.Wait(); err != nil || !s.remove {
		return err
	}
	return s.removeThere(ctx, names)
}

// inside returns a path in the container that cannot be mistaken for a flag.
func inside(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return "./" + name
}

// pack writes the local source to an archive, and adds the names of the entries to names.
func (s *sync) pack(out io.Writer, names map[string]bool) error {
	archive := tar.NewWriter(out)
	err := filepath.WalkDir(s.from.path, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(s.from.path, file)
		if err != nil {
			return err
		}
		name := path.Join(s.from.base(), filepath.ToSlash(relative))
		if name == "." {
			return nil
		}
		if !s.filter.keeps(name, entry.IsDir()) {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		names[name] = true
		s.printFile(name)
		return s.packFile(archive, file, name, entry)
	})
	return errors.Join(err, archive.Close())
}

func (s *sync) packFile(archive *tar.Writer, file, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = os.Readlink(file); err != nil {
			return err
		}
	case !info.Mode().IsRegular() && !info.IsDir():
		fmt.Fprintf(s.ErrOut, "WARNING: skipping %q: not a file or directory\n", name)
		return nil
	}
	mode := int64(info.Mode().Perm())
	if s.noPerms {
		mode = int64(plain(info.Mode()))
	}
	header := &tar.Header{Name: name, Mode: mode, ModTime: info.ModTime(), Format: tar.FormatPAX}
	switch {
	case info.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
	case link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, link
	default:
		header.Typeflag, header.Size = tar.TypeReg, info.Size()
	}
	if err := archive.WriteHeader(header); err != nil || header.Typeflag != tar.TypeReg {
		return err
	}
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer content.Close()
	if _, err := io.CopyN(archive, content, info.Size()); err != nil {
		return fmt.Errorf("copy %q, which changed during the copy: %w", file, err)
	}
	return nil
}

// plain returns the default permissions of a file or directory.
func plain(mode fs.FileMode) fs.FileMode {
	if mode.IsDir() || mode&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

// removeThere deletes the files in the container that names does not contain, except files that the
// filter excludes.
func (s *sync) removeThere(ctx context.Context, names map[string]bool) error {
	root := path.Join(inside(s.to.path), s.from.base())
	var buf bytes.Buffer
	list := []string{"/bin/sh", "-c", `cd "$0" && find . -depth -print0`, inside(root)}
	if err := s.in(ctx, list, genericiooptions.IOStreams{Out: &buf, ErrOut: s.ErrOut}); err != nil {
		return fmt.Errorf("list %q in the container: %w", root, err)
	}
	var files []string
	for text := range strings.SplitSeq(buf.String(), "\x00") {
		if name := path.Clean(text); name != "." {
			files = append(files, path.Join(s.from.base(), name))
		}
	}
	stale := s.surplus(files, names)
	if len(stale) == 0 {
		return nil
	}
	removal := []string{"/bin/sh", "-c", `cd "$0" && exec xargs -0 rm -rf --`, inside(s.to.path)}
	if err := s.in(ctx, removal, genericiooptions.IOStreams{In: strings.NewReader(strings.Join(stale, "\x00")), Out: io.Discard, ErrOut: s.ErrOut}); err != nil {
		return fmt.Errorf("remove from %q in the container: %w", root, err)
	}
	return nil
}

// surplus returns the files to delete. These are all files that names does not contain, except
// excluded files and their parent directories.
func (s *sync) surplus(files []string, names map[string]bool) (stale []string) {
	remaining := map[string]bool{}
	for _, name := range files {
		for above := name; s.isExcluded(name) && above != "."; above = path.Dir(above) {
			remaining[above] = true
		}
	}
	for _, name := range files {
		if !names[name] && !remaining[name] {
			s.printFile("deleting " + name)
			stale = append(stale, name)
		}
	}
	return stale
}

// isExcluded reports whether the filter excludes a name, as a file or as a directory.
func (s *sync) isExcluded(name string) bool {
	return !s.filter.keeps(name, true) || !s.filter.keeps(name, false)
}

// download unpacks an archive that tar creates in the container.
func (s *sync) download(ctx context.Context) error {
	directory, name := inside(s.from.path), "."
	if base := s.from.base(); base != "" {
		directory, name = path.Dir(directory), "./"+base
	}
	if err := os.MkdirAll(s.to.path, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.to.path)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{sync: s, root: root, names: map[string]bool{}}
	reader, writer := io.Pipe()
	work, running := errgroup.WithContext(ctx)
	work.Go(func() error {
		err := s.in(running, []string{"tar", "-C", directory, "-cf", "-", name}, genericiooptions.IOStreams{Out: writer, ErrOut: s.ErrOut})
		if err != nil {
			err = fmt.Errorf("pack in the container: %w", err)
		}
		writer.CloseWithError(err)
		return err
	})
	work.Go(func() error {
		err := u.extract(bufio.NewReader(reader))
		reader.CloseWithError(err)
		return err
	})
	if err := work.Wait(); err != nil || !s.remove {
		return err
	}
	return u.removeHere()
}

// removeHere deletes the local files that were not received, except files that the filter excludes.
func (u *unpacker) removeHere() error {
	start := "."
	if base := u.sync.from.base(); base != "" {
		start = base
	}
	var files []string
	err := fs.WalkDir(u.root.FS(), start, func(name string, _ fs.DirEntry, err error) error {
		if name != start {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range u.sync.surplus(files, u.names) {
		if err := u.root.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// printFile prints a file name if --progress is set. It quotes the name, because the container
// determines it.
func (s *sync) printFile(text string) {
	if s.progress {
		fmt.Fprintf(s.Out, "%q\n", text)
	}
}
