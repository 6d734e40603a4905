package config

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// StartSettings contains the settings for which OpenShift 3's `openshift start` has flags.
type StartSettings struct {
	// PublicMaster is the API server's address for external clients: a host, a host and port, or a
	// URL.
	PublicMaster string
	// CORSAllowedOrigins is the value of corsAllowedOrigins in the MasterConfig.
	CORSAllowedOrigins []string
}

// Write writes the default files, as WriteDefaults does, with these settings. If a MasterConfig
// exists, Write does not change it, and returns an error if its settings differ.
func (s StartSettings) Write(dataDir string) error {
	settings, err := s.settings()
	if err != nil {
		return err
	}
	path := MasterFile(dataDir)
	if _, err := os.Lstat(path); os.IsNotExist(err) {
		content, err := yaml.Marshal(settings)
		if err != nil {
			return fmt.Errorf("write settings: %w", err)
		}
		if len(settings) == 0 {
			content = nil
		}
		if err := writeFile(path, append([]byte(defaultMasterFile()), content...)); err != nil {
			return fmt.Errorf("write default configuration: %w", err)
		}
	} else if err := s.compare(dataDir, settings); err != nil {
		return err
	}
	return WriteDefaults(dataDir)
}

// settings returns the MasterConfig keys that the flags set.
func (s StartSettings) settings() (map[string]any, error) {
	settings := map[string]any{}
	if s.PublicMaster != "" {
		address := s.PublicMaster
		if !strings.Contains(address, "://") {
			address = "https://" + address
		}
		parsed, err := url.Parse(address)
		if err != nil || parsed.Hostname() == "" {
			return nil, fmt.Errorf("parse --public-master %q: must be a host or URL such as https://master.example.com:8443", s.PublicMaster)
		}
		if parsed.Port() == "" && !strings.Contains(s.PublicMaster, "://") {
			parsed.Host = net.JoinHostPort(parsed.Hostname(), "8443")
		}
		settings["masterPublicURL"] = parsed.String()
	}
	if len(s.CORSAllowedOrigins) > 0 {
		settings["corsAllowedOrigins"] = s.CORSAllowedOrigins
	}
	return settings, nil
}

// compare returns an error if the MasterConfig differs from the given settings.
func (s StartSettings) compare(dataDir string, settings map[string]any) error {
	c, err := LoadAnyway(dataDir, "")
	if c == nil {
		return err
	}
	const remedy = "%s is %q in %s, and the flag is %q; change the file, or omit the flag"
	if address, ok := settings["masterPublicURL"]; ok && c.Master.MasterPublicURL != address {
		return fmt.Errorf(remedy, "masterPublicURL", c.Master.MasterPublicURL, MasterFile(dataDir), address)
	}
	if origins := s.CORSAllowedOrigins; len(origins) > 0 && !slices.Equal(origins, c.Master.CORSAllowedOrigins) {
		return fmt.Errorf(remedy, "corsAllowedOrigins", c.Master.CORSAllowedOrigins, MasterFile(dataDir), origins)
	}
	return nil
}
