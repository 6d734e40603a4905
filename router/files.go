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

// lookAtFiles is how often files that may change are looked at.
const lookAtFiles = 10 * time.Second

// followed are files that may change while the router runs, and what is done then.
type followed struct {
	paths []string
	look  func()
}

// state is what tells the content of files from another one.
func (f followed) state() string {
	var text strings.Builder
	for _, path := range f.paths {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintln(&text, info.ModTime(), info.Size())
		}
	}
	return text.String()
}

// followFiles has a configuration made when the file of services' authorities or that of the default certificate has changed.
func (s *session) followFiles(ctx context.Context) {
	files := []followed{{s.certificateFiles(), s.lookAtCertificate}}
	if s.ServiceCA != "" {
		files = append(files, followed{[]string{s.ServiceCA}, s.lookAtServiceCA})
		s.lookAtServiceCA()
	}
	last := make([]string, len(files))
	for i := range files {
		last[i] = files[i].state()
	}
	ticker := time.NewTicker(lookAtFiles)
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
				files[i].look()
				s.again()
			}
		}
	}
}

// lookAtServiceCA says when the authorities of services cannot be used.
func (s *session) lookAtServiceCA() {
	content, err := os.ReadFile(s.ServiceCA)
	if err == nil {
		_, err = certificate.Authorities(string(content))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		slog.Error("the authorities of services cannot be read, and stay those that they were; if there were none, no pod of re-encrypt routes is trusted", "file", s.ServiceCA, "error", err)
	}
}

// certificateFiles are those of the default certificate.
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

// lookAtCertificate reads the default certificate anew. One that cannot be used changes nothing.
func (s *session) lookAtCertificate() {
	pem, err := defaultCertificate(s.Settings, "")
	if err != nil {
		slog.Error("the default certificate cannot be read, and stays the one that it was", "error", err)
		return
	}
	s.fallback.Store(&pem)
}
