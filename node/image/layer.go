package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// entry is a file, directory or symbolic link in an image, owned by root.
type entry struct {
	// path has no leading slash. A directory's path ends with a slash.
	path string
	mode int64
	// link is the target of a symbolic link.
	link string
	// A file's content is data, the content of the host file source, or the data from the reader
	// that open returns. size is the size of the reader's data, in bytes.
	data   []byte
	source string
	open   func() (io.ReadCloser, error)
	size   int64
	// capability is the number of a program's file capability, or 0 for no capability.
	capability int
}

func dir(path string, mode int64) entry { return entry{path: path + "/", mode: mode} }
func file(path string, mode int64, data string) entry {
	return entry{path: path, mode: mode, data: []byte(data)}
}
func link(path, target string) entry    { return entry{path: path, mode: 0o777, link: target} }
func program(path, source string) entry { return entry{path: path, mode: 0o755, source: source} }

// accounts returns the files that define the users root and nobody, and the order of host lookups:
// /etc/hosts before DNS.
func accounts() []entry {
	return []entry{
		dir("etc", 0o755),
		file("etc/group", 0o644, "root:x:0:\nnogroup:x:65534:\n"),
		file("etc/nsswitch.conf", 0o644, "hosts: files dns\n"),
		file("etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
		dir("root", 0o700),
		dir("tmp", 0o1777),
	}
}

// writeTar writes entries as a reproducible tar archive: the entries are sorted and all have the
// same fixed time.
func writeTar(w io.Writer, entries []entry) error {
	sorted := slices.SortedFunc(slices.Values(entries), func(a, b entry) int { return strings.Compare(a.path, b.path) })
	archive := tar.NewWriter(w)
	for _, e := range sorted {
		if err := e.write(archive); err != nil {
			return fmt.Errorf("add %q to image: %w", e.path, err)
		}
	}
	return archive.Close()
}

func (e entry) write(archive *tar.Writer) error {
	header := &tar.Header{Name: e.path, Mode: e.mode, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	if e.capability != 0 {
		header.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": fileCapability(e.capability)}
	}
	var content io.Reader = bytes.NewReader(e.data)
	switch {
	case strings.HasSuffix(e.path, "/"):
		header.Typeflag = tar.TypeDir
	case e.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
	case e.source != "":
		source, err := os.Open(e.source)
		if err != nil {
			return err
		}
		defer source.Close()
		info, err := source.Stat()
		if err != nil {
			return err
		}
		header.Typeflag, header.Size, content = tar.TypeReg, info.Size(), source
	case e.open != nil:
		source, err := e.open()
		if err != nil {
			return err
		}
		defer source.Close()
		header.Typeflag, header.Size, content = tar.TypeReg, e.size, source
	default:
		header.Typeflag, header.Size = tar.TypeReg, int64(len(e.data))
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	if header.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(archive, content)
	return err
}
