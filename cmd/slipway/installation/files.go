package installation

import (
	"bytes"
	_ "embed" // required by go:embed
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/slipway-platform/slipway/internal/version"
)

// unit and balancerUnit are the services' systemd units. COMMAND is a placeholder for the command
// line.
var (
	//go:embed slipway.service
	unit string
	//go:embed slipway-lb.service
	balancerUnit string
)

// Directories for manual pages and completions, relative to Machine.Root.
const (
	manDir  = "usr/local/share/man/man1"
	bashDir = "etc/bash_completion.d"
	zshDir  = "usr/local/share/zsh/site-functions"
)

// files returns the files that a request installs.
func (m Machine) files(request Request) (files []file, err error) {
	command, err := request.commandLine()
	if err != nil {
		return nil, err
	}
	text := unit
	if request.LoadBalancer != nil {
		text = balancerUnit
	}
	files = append(files, file{path: unitPath(request.service()), content: []byte(strings.Replace(text, "COMMAND", command, 1)), mode: 0o644})
	if request.Program != m.path(programPath) { // otherwise, the program is already installed
		content, err := os.ReadFile(request.Program)
		if err != nil {
			return nil, fmt.Errorf("read this program: %w", err)
		}
		files = append(files, file{path: programPath, content: content, mode: 0o755})
	}
	files = append(files, file{path: clientPath, target: filepath.Base(programPath)})
	for name, tree := range request.Commands {
		more, err := m.texts(name, tree)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// commandLine returns the service's command line, quoted for systemd.
func (r Request) commandLine() (string, error) {
	words := []string{"/" + programPath, "run", "--data-dir", r.DataDir}
	if r.LoadBalancer != nil {
		words = slices.Concat([]string{"/" + programPath, "lb", "run", "--data-dir", r.DataDir}, r.LoadBalancer)
	}
	if r.Config != "" {
		words = append(words, "--config", r.Config)
	}
	for i, word := range words {
		if strings.ContainsAny(word, "\"\\\n") {
			return "", fmt.Errorf("write service: the path %q contains a quote, a backslash or a line break: use another one", word)
		}
		if words[i] = strings.NewReplacer("%", "%%", "$", "$$").Replace(word); strings.ContainsAny(word, " \t';") {
			words[i] = `"` + words[i] + `"`
		}
	}
	return strings.Join(words, " "), nil
}

// texts returns a program's manual pages, one for each command, and its completions for the
// installed shells.
func (m Machine) texts(name string, tree *cobra.Command) (files []file, err error) {
	files, err = pages(tree)
	if err != nil {
		return nil, err
	}
	for _, shell := range []struct {
		dir, prefix string
		generate    func(*bytes.Buffer) error
	}{
		{bashDir, "", func(out *bytes.Buffer) error { return tree.GenBashCompletionV2(out, true) }},
		{zshDir, "_", func(out *bytes.Buffer) error { return tree.GenZshCompletion(out) }},
	} {
		if _, err := os.Stat(m.path(shell.dir)); err != nil {
			continue // the shell is not installed
		}
		var text bytes.Buffer
		if err := shell.generate(&text); err != nil {
			return nil, fmt.Errorf("write completion of %s: %w", name, err)
		}
		files = append(files, file{path: filepath.Join(shell.dir, shell.prefix+name), content: text.Bytes(), mode: 0o644})
	}
	return files, nil
}

// pages returns the manual pages of a command and its subcommands. For example, the page for `oc
// create route` is oc-create-route.
func pages(command *cobra.Command) (files []file, err error) {
	command.DisableAutoGenTag = true // the tag contains the date
	name := strings.ReplaceAll(command.CommandPath(), " ", "-")
	header := &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: "Slipway " + version.Slipway(), Manual: "Slipway", Date: &time.Time{}}
	var text bytes.Buffer
	if err := doc.GenMan(command, header, &text); err != nil {
		return nil, fmt.Errorf("write manual page of %s: %w", name, err)
	}
	files = append(files, file{path: filepath.Join(manDir, name+".1"), content: text.Bytes(), mode: 0o644})
	for _, child := range command.Commands() {
		if !child.IsAvailableCommand() || child.IsAdditionalHelpTopicCommand() {
			continue
		}
		more, err := pages(child)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}
