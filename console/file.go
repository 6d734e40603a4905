package console

import (
	"compress/gzip"
	"embed"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// embedded contains the compressed files that hack/console builds. Files whose names begin with a
// dot are not embedded.
//
//go:embed dist
var embedded embed.FS

// file is one of the console's files. If compression reduces the size of a file, only its
// compressed forms are embedded. The content is not kept in memory.
type file struct {
	contentType string
	etag        string
	// forms maps an encoding (br, gzip, or "" for none) to the name of the embedded file in this
	// encoding.
	forms map[string]string
}

// index is the name of the page that the server returns for the console's paths that are not files.
const index = "index.html"

// readFiles returns the files, keyed by a path such as assets/index-1a2b3c4d.js. It returns no
// files if the binary was built without the console.
func readFiles(files fs.FS) (map[string]file, error) {
	all := map[string]file{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || slices.Contains([]string{"README", "inputs"}, name) {
			return err
		}
		encoding, base := "", name
		switch path.Ext(name) {
		case ".br":
			encoding, base = "br", strings.TrimSuffix(name, ".br")
		case ".gz":
			encoding, base = "gzip", strings.TrimSuffix(name, ".gz")
		}
		f, ok := all[base]
		if !ok {
			f = file{contentType: mime.TypeByExtension(path.Ext(base)), forms: map[string]string{}}
		}
		f.forms[encoding] = name
		if f.etag == "" {
			f.etag, err = etag(files, name)
		}
		all[base] = f
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read web console files: %w", err)
	}
	return all, nil
}

// etag returns a file's hash as an entity tag.
func etag(files fs.FS, name string) (string, error) {
	content, err := files.Open(name)
	if err != nil {
		return "", err
	}
	defer content.Close()
	hash := fnv.New128a()
	if _, err := io.Copy(hash, content); err != nil {
		return "", err
	}
	return strconv.Quote(hex.EncodeToString(hash.Sum(nil))), nil
}

// serveFile serves a file, or the page if the path is not a file. For a missing asset, it returns
// 404, so that a browser with an older page does not interpret the page as a script.
func (s *server) serveFile(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Use GET.", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path+"/" == Path {
		http.Redirect(w, r, Path, http.StatusFound)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, Path)
	f, ok := s.files[name]
	header := w.Header()
	switch {
	case ok && strings.HasPrefix(r.URL.Path, assetsPath):
		// Asset names contain a hash, so the content of an asset never changes.
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	case strings.HasPrefix(r.URL.Path, assetsPath):
		http.NotFound(w, r)
		return
	case ok && name != index:
		header.Set("Cache-Control", "no-cache")
	default:
		if f, ok = s.files[index]; !ok {
			http.Error(w, "This slipway was built without its web console. Run: make build", http.StatusServiceUnavailable)
			return
		}
		header.Set("Cache-Control", "no-cache")
	}
	// The deadline protects against browsers that do not read the response. Ignore errors, because
	// the response writers in tests do not support deadlines.
	deadline := http.NewResponseController(w)
	_ = deadline.SetWriteDeadline(time.Now().Add(fileTimeout))
	s.write(w, r, f)
	_ = deadline.SetWriteDeadline(time.Time{})
}

// fileTimeout is the maximum time that a browser can take to read a file.
const fileTimeout = time.Minute

// write sends a file in the smallest form that the client accepts.
func (s *server) write(w http.ResponseWriter, r *http.Request, f file) {
	header := w.Header()
	header.Set("Content-Type", f.contentType)
	header.Set("Vary", "Accept-Encoding")
	header.Set("Etag", f.etag)
	if r.Header.Get("If-None-Match") == f.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	encoding := ""
	for _, candidate := range []string{"gzip", "br"} {
		if f.forms[candidate] != "" && accepts(r.Header.Get("Accept-Encoding"), candidate) {
			encoding = candidate
		}
	}
	if err := s.send(w, f, encoding); err != nil {
		s.Report(err)
	}
}

// send writes a file in one encoding. It decompresses the file for clients that do not accept
// compression.
func (s *server) send(w http.ResponseWriter, f file, encoding string) error {
	name, ok := f.forms[encoding]
	decompress := !ok
	if decompress {
		name = f.forms["gzip"]
	}
	file, err := s.content.Open(name)
	if err != nil {
		http.Error(w, "The file cannot be read.", http.StatusInternalServerError)
		return fmt.Errorf("read web console file: %w", err)
	}
	defer file.Close()
	var content io.Reader = file
	if decompress {
		if content, err = gzip.NewReader(file); err != nil {
			http.Error(w, "The file cannot be read.", http.StatusInternalServerError)
			return fmt.Errorf("read file %q of the web console: %w", name, err)
		}
	}
	if encoding != "" {
		w.Header().Set("Content-Encoding", encoding)
	}
	_, _ = io.Copy(w, content) // an error means that the browser has disconnected
	return nil
}

// accepts reports whether an Accept-Encoding list contains an encoding with a quality other than 0.
func accepts(list, encoding string) bool {
	for part := range strings.SplitSeq(list, ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) == encoding {
			return quality == "" || strings.Trim(quality, " q=0.") != ""
		}
	}
	return false
}
