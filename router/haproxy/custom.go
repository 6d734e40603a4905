package haproxy

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/slipway-platform/slipway/router/model"
)

// templateDir is the working directory in OpenShift's templates.
const templateDir = "/var/lib/haproxy"

// configName is the name under which an OpenShift template defines the configuration file.
const configName = templateDir + "/conf/haproxy.config"

// custom executes a custom template instead of the built-in template, with the data and functions
// that OpenShift 3.11 provides. Each {{define}} whose name is an absolute path writes that file.
// The path /var/lib/haproxy refers to the working directory. If a template contains no such
// definitions, its output is the configuration itself.
func (w *Writer) custom(file string, state *model.State, bind bool, config *Config) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read TEMPLATE_FILE: %w", err)
	}
	functions := w.templateFunctions(state, config.Certificates)
	parsed, err := template.New(filepath.Base(file)).Funcs(functions).Parse(string(content))
	if err != nil {
		return fmt.Errorf("parse TEMPLATE_FILE %q: %w", file, err)
	}
	aliases := make(map[model.ServiceAliasConfigKey]model.ServiceAliasConfig, len(state.Aliases))
	for key, alias := range state.Aliases {
		aliases[key] = *alias
	}
	data := map[string]any{
		"WorkingDir": w.Dir, "State": aliases, "ServiceUnits": state.ServiceUnits, "BindPorts": bind,
		"PeerEndpoints":      state.PeerEndpoints,
		"DefaultCertificate": filepath.Join(w.Dir, defaultCertificateFile), "StatsPort": w.statsPort(),
		"StatsUser": w.Settings.Text("STATS_USERNAME"), "StatsPassword": w.Settings.Text("STATS_PASSWORD"),
	}
	run := func(name string) (string, error) {
		var text bytes.Buffer
		if err := parsed.ExecuteTemplate(&text, name, data); err != nil {
			return "", fmt.Errorf("run TEMPLATE_FILE %q: %w", file, err)
		}
		return strings.ReplaceAll(text.String(), templateDir, w.Dir), nil
	}
	for _, template := range parsed.Templates() {
		name, below := strings.CutPrefix(template.Name(), templateDir+"/")
		if !below {
			continue
		}
		text, err := run(template.Name())
		if err != nil {
			return err
		}
		if template.Name() == configName {
			config.whole = text
			continue
		}
		if !filepath.IsLocal(name) {
			return fmt.Errorf("run TEMPLATE_FILE %q: it defines %q, which is outside %s",
				file, template.Name(), templateDir)
		}
		config.Files[name] = []byte(text)
	}
	if config.whole == "" {
		config.whole, err = run(parsed.Name())
	}
	return err
}
