package containerd

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"text/template"
)

//go:embed config.toml.tmpl
var configTemplate string

// maxSocketDir is the maximum length of the shim socket directory's path, in bytes. containerd
// appends names of 65 characters, and the path in a Unix socket address has at most 107 characters.
const maxSocketDir = 42

// ShimSocketDir returns the directory for the shims' sockets, which is in State. If that path is
// too long for a socket address, it returns a directory in /run whose name is derived from State. A
// caller that removes State must also remove this directory.
func (r Runtime) ShimSocketDir() string {
	if dir := filepath.Join(r.State, "s"); len(dir) <= maxSocketDir {
		return dir
	}
	sum := fnv.New64a()
	sum.Write([]byte(r.State))
	return fmt.Sprintf("/run/slipway-%016x", sum.Sum64())
}

// config returns containerd's configuration file for a host, in version 4 of the format (containerd
// 2.4).
func (r Runtime) config(h host) ([]byte, error) {
	parsed, err := template.New("config").Funcs(template.FuncMap{"quote": quote}).Parse(configTemplate)
	if err != nil {
		return nil, err
	}
	level := r.LogLevel
	if level == "" {
		level = "warn"
	}
	var buffer bytes.Buffer
	err = parsed.Execute(&buffer, map[string]any{
		"Runtime":       r,
		"LogLevel":      level,
		"Snapshotter":   h.snapshotter(),
		"Platform":      h.platform,
		"ShimSocketDir": r.ShimSocketDir(),
		"RuncRoot":      filepath.Join(r.State, "runc"),
		"RestrictOOM":   !h.lowersOOMScore,
	})
	return buffer.Bytes(), err
}

// quote returns s as a TOML basic string. json.Marshal produces such a string unless s contains the
// control character DEL.
func quote(s string) (string, error) {
	data, err := json.Marshal(s)
	return string(data), err
}
