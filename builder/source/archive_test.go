package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// entries makes a tar archive; an entry without a type is a file.
func entries(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, header := range headers {
		content := "content"
		if header.Typeflag == 0 {
			header.Typeflag = tar.TypeReg
		}
		if header.Typeflag != tar.TypeReg {
			content = ""
		}
		header.Size = int64(len(content))
		if header.Mode == 0 {
			header.Mode = 0o644
		}
		if err := writer.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(writer, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// extract extracts an archive to a directory beside which nothing may appear.
func extract(t testing.TB, archive io.Reader, limit *Limit) (dir string, err error) {
	t.Helper()
	parent := t.TempDir()
	dir = filepath.Join(parent, "source")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	err = Extract(t.Context(), archive, root, limit)
	if beside, readErr := os.ReadDir(parent); readErr != nil || len(beside) != 1 {
		t.Errorf("beside the directory is %v, %v", beside, readErr)
	}
	return dir, err
}

func TestArchivesOfEachFormAreExtracted(t *testing.T) {
	plain := entries(t, tar.Header{Name: "./sub/run", Mode: 0o4755}, tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "sub/run"},
		tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "./sub/run"}, tar.Header{Name: "closed/", Typeflag: tar.TypeDir, Mode: 0o500})
	compressed := func(writer io.WriteCloser, buffer *bytes.Buffer) []byte {
		if _, err := writer.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		return buffer.Bytes()
	}
	var zipped, zstandard bytes.Buffer
	encoder, err := zstd.NewWriter(&zstandard)
	if err != nil {
		t.Fatal(err)
	}
	for form, archive := range map[string][]byte{
		"tar": plain, "gzip": compressed(gzip.NewWriter(&zipped), &zipped), "zstd": compressed(encoder, &zstandard),
	} {
		dir, err := extract(t, bytes.NewReader(archive), NewLimit())
		if err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		for _, name := range []string{"sub/run", "link", "hard"} {
			if got := content(dir, name); got != "content" {
				t.Errorf("%s: %s has %q", form, name, got)
			}
		}
		if info, err := os.Stat(filepath.Join(dir, "sub/run")); err != nil || info.Mode() != 0o755 {
			t.Errorf("%s: the mode of a file is %v, %v", form, info.Mode(), err)
		}
		if info, err := os.Stat(filepath.Join(dir, "closed")); err != nil || info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%s: the mode of a directory is %v, %v", form, info.Mode(), err)
		}
	}
}

func TestZipArchivesAreExtracted(t *testing.T) {
	var buffer bytes.Buffer
	writer := zip.NewWriter(&buffer)
	for _, name := range []string{"sub/", "sub/file"} {
		file, err := writer.Create(name)
		if err == nil && !strings.HasSuffix(name, "/") {
			_, err = io.WriteString(file, "content")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	dir, err := extract(t, &buffer, NewLimit())
	if err != nil || content(dir, "sub/file") != "content" {
		t.Errorf("%v, %q", err, content(dir, "sub/file"))
	}
}

func TestEntriesThatLeadOutAreErrors(t *testing.T) {
	outside := t.TempDir()
	for what, headers := range map[string][]tar.Header{
		"a name with ..":           {{Name: "../beside"}},
		"a hidden ..":              {{Name: "a/../../beside"}},
		"an absolute name":         {{Name: filepath.Join(outside, "file")}},
		"through a link":           {{Name: "link", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "link/file"}},
		"through a relative link":  {{Name: "link", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "link/beside"}},
		"a directory through it":   {{Name: "link", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "link/sub/", Typeflag: tar.TypeDir}},
		"a hard link out":          {{Name: "hard", Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"}},
		"a hard link through one":  {{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, {Name: "hard", Typeflag: tar.TypeLink, Linkname: "link/passwd"}},
		"a device":                 {{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}},
		"a disk":                   {{Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 8}},
		"a pipe":                   {{Name: "pipe", Typeflag: tar.TypeFifo}},
		"in place of the root":     {{Name: ".", Typeflag: tar.TypeSymlink, Linkname: outside}},
		"in place of a directory":  {{Name: "sub/file"}, {Name: "sub", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "sub/other"}},
		"a directory for the link": {{Name: "link", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "link/", Typeflag: tar.TypeDir, Mode: 0o777}, {Name: "link/x"}},
	} {
		if _, err := extract(t, bytes.NewReader(entries(t, headers...)), NewLimit()); err == nil || !strings.HasPrefix(err.Error(), "extract ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if found, err := os.ReadDir(outside); err != nil || len(found) != 0 {
		t.Errorf("outside is %v, %v", found, err)
	}
}

func TestALinkOverAFileIsReplacedNotFollowed(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(outside, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := extract(t, bytes.NewReader(entries(t, tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: outside}, tar.Header{Name: "link"})), NewLimit())
	if err != nil || content(dir, "link") != "content" || content(filepath.Dir(outside), "file") != "kept" {
		t.Errorf("%v: inside %q, outside %q", err, content(dir, "link"), content(filepath.Dir(outside), "file"))
	}
}

// endless is a file of zeros in an archive, as long as the header says, which is for ever.
type endless struct{ header io.Reader }

func (e endless) Read(p []byte) (int, error) {
	if n, _ := e.header.Read(p); n > 0 {
		return n, nil
	}
	clear(p)
	return len(p), nil
}

func TestASourceThatGrowsEnds(t *testing.T) {
	var header bytes.Buffer
	if err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: "zeros", Size: 1 << 40, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	limit := &Limit{Bytes: 1 << 20, Files: 10}
	if _, err := extract(t, endless{&header}, limit); err == nil || !strings.Contains(err.Error(), "larger than 1MiB") {
		t.Errorf("endless zeros: %v", err)
	}
	var many []tar.Header
	for range 11 {
		many = append(many, tar.Header{Name: "file"})
	}
	if _, err := extract(t, bytes.NewReader(entries(t, many...)), &Limit{Bytes: 1 << 20, Files: 10}); err == nil || !strings.Contains(err.Error(), "more than 10 files") {
		t.Errorf("many files: %v", err)
	}
}

func TestAnEmptyUploadIsNamed(t *testing.T) {
	if _, err := extract(t, strings.NewReader(""), NewLimit()); err == nil || !strings.Contains(err.Error(), "nothing was uploaded") {
		t.Error(err)
	}
}

func TestAnUploadIsStoredAsAFile(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := Store(t.Context(), strings.NewReader("content"), root, "app.war", NewLimit()); err != nil || content(dir, "app.war") != "content" {
		t.Errorf("%v, %q", err, content(dir, "app.war"))
	}
	if err := Store(t.Context(), strings.NewReader("content"), root, "../app.war", NewLimit()); err == nil {
		t.Error("it is stored outside")
	}
}

// FuzzExtract holds that no archive writes anything beside its directory, or more than its limit.
func FuzzExtract(f *testing.F) {
	f.Add(entries(f, tar.Header{Name: "file"}, tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "../x"}, tar.Header{Name: "link/file"}))
	f.Add(entries(f, tar.Header{Name: "../file"}))
	f.Add([]byte("\x1f\x8b"))
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte("BZh9"))
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		const most = 1 << 20
		dir, _ := extract(t, bytes.NewReader(archive), &Limit{Bytes: most, Files: 100})
		var size int64
		err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			info, err := entry.Info()
			if err == nil {
				size += info.Size()
			}
			return err
		})
		if err != nil || size > most {
			t.Errorf("it writes %d bytes, %v", size, err)
		}
	})
}
