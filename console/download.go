package console

import (
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// clients lists the file names of the command line clients that the console offers, with their
// operating systems and architectures. `make oc-all` builds these files.
var clients = []struct{ file, system, architecture string }{
	{"oc-linux-amd64", "linux", "amd64"}, {"oc-linux-arm64", "linux", "arm64"},
	{"oc-darwin-amd64", "darwin", "amd64"}, {"oc-darwin-arm64", "darwin", "arm64"},
	{"oc-windows-amd64", "windows", "amd64"}, {"oc-windows-arm64", "windows", "arm64"},
}

// download describes a client that users can download.
type download struct {
	System       string `json:"system"`
	Architecture string `json:"architecture"`
	Path         string `json:"path"`
	Bytes        int64  `json:"bytes"`

	file string
}

// downloads returns the clients that exist in the s.Downloads directory. The oc file is the client
// for this machine's operating system.
func (s *server) downloads() []download {
	if s.Downloads == "" {
		return nil
	}
	var all []download
	for _, client := range clients {
		names := []string{client.file, client.file + ".exe"}
		if client.system == runtime.GOOS && client.architecture == runtime.GOARCH {
			names = append(names, "oc")
		}
		for _, name := range names {
			path := filepath.Join(s.Downloads, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				all = append(all, download{client.system, client.architecture, downloadsPath + client.file, info.Size(), path})
				break
			}
		}
	}
	return all
}

// downloadTimeout is the maximum time that a browser can take to download a client.
const downloadTimeout = 15 * time.Minute

// serveDownload sends a client to a logged-in user.
func (s *server) serveDownload(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.session(r); !ok {
		http.Error(w, "Log in to the web console first.", http.StatusUnauthorized)
		return
	}
	for _, offered := range s.downloads() {
		if r.URL.Path != offered.Path {
			continue
		}
		name := "oc"
		if offered.System == "windows" {
			name = "oc.exe"
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
		deadline := http.NewResponseController(w)
		_ = deadline.SetWriteDeadline(time.Now().Add(downloadTimeout))
		http.ServeFile(w, r, offered.file)
		_ = deadline.SetWriteDeadline(time.Time{})
		return
	}
	http.Error(w, "This server does not have the client "+strings.TrimPrefix(r.URL.Path, downloadsPath)+". Run: make oc-all", http.StatusNotFound)
}
