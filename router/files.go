package router

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/router/certificate"
)

// filePollInterval is the interval at which files are checked for changes.
const filePollInterval = 10 * time.Second

// watchedFile contains the paths of files that can change while the router is running, and the
// function that handles changes.
type watchedFile struct {
	paths  []string
	reload func()
}

// state returns a fingerprint of the files: their modification times and sizes.
func (f watchedFile) state() string {
	var text strings.Builder
	for _, path := range f.paths {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintln(&text, info.ModTime(), info.Size())
		}
	}
	return text.String()
}

// followFiles triggers a new configuration when the service CA file or the default certificate
// changes.
func (s *session) followFiles(ctx context.Context) {
	files := []watchedFile{{s.certificateFiles(), s.reloadCertificate}}
	if s.ServiceCA != "" {
		files = append(files, watchedFile{[]string{s.ServiceCA}, s.checkServiceCA})
		s.checkServiceCA()
	}
	last := make([]string, len(files))
	for i := range files {
		last[i] = files[i].state()
	}
	ticker := time.NewTicker(filePollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for i := range files {
			if now := files[i].state(); now != last[i] {
				last[i] = now
				files[i].reload()
				s.again()
			}
		}
	}
}

// checkServiceCA logs an error if the service CA file is invalid.
func (s *session) checkServiceCA() {
	content, err := os.ReadFile(s.ServiceCA)
	if err == nil {
		_, err = certificate.Authorities(string(content))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		slog.Error("cannot read service CAs; re-encrypt routes use the previous ones, or trust no pod if there are none",
			"path", s.ServiceCA, "error", err)
	}
}

// certificateFiles returns the paths of the default certificate's files.
func (s *session) certificateFiles() []string {
	path, dir := s.Settings.Text("DEFAULT_CERTIFICATE_PATH"), s.Settings.Text("DEFAULT_CERTIFICATE_DIR")
	switch {
	case s.Settings.Text("DEFAULT_CERTIFICATE") != "":
		return nil
	case path != "":
		return []string{path}
	case dir != "":
		return []string{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
	}
	return nil
}

// reloadCertificate reloads the default certificate. It ignores an invalid certificate.
func (s *session) reloadCertificate() {
	pem, err := defaultCertificate(s.Settings, "")
	if err != nil {
		slog.Error("cannot read default certificate; the previous one stays in effect", "error", err)
		return
	}
	s.fallback.Store(&pem)
}
