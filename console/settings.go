package console

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/yaml"
)

// The ConfigMap that configures the console, as in OpenShift 3.9 to 3.11.
const (
	settingsNamespace = "openshift-web-console"
	settingsName      = "webconsole-config"
	settingsKey       = "webconsole-config.yaml"
)

// settings is a WebConsoleConfiguration, the content of settingsKey. The keys that configured the
// server of OpenShift's console (servingInfo), and clusterResourceOverridesEnabled, are accepted
// but have no effect.
//
// Source: OpenShift 3.9 Architecture, 2.3.1; github.com/openshift/origin-web-console-server.
type settings struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	// ClusterInfo contains addresses for browsers. An empty address means the default.
	ClusterInfo clusterInfo `json:"clusterInfo"`
	Features    struct {
		// InactivityTimeoutMinutes is how long, in minutes, a user can be inactive before the session
		// ends. 0 means that the session never ends.
		InactivityTimeoutMinutes        int  `json:"inactivityTimeoutMinutes"`
		ClusterResourceOverridesEnabled bool `json:"clusterResourceOverridesEnabled"`
	} `json:"features"`
	Extensions  extensions     `json:"extensions"`
	ServingInfo map[string]any `json:"servingInfo"`
}

type clusterInfo struct {
	// ConsolePublicURL is the console's address, and MasterPublicURL is the API server's address.
	ConsolePublicURL string `json:"consolePublicURL"`
	MasterPublicURL  string `json:"masterPublicURL"`
	// LoggingPublicURL and MetricsPublicURL are the addresses of pages that show archived logs and
	// metrics.
	LoggingPublicURL string `json:"loggingPublicURL"`
	MetricsPublicURL string `json:"metricsPublicURL"`
	// LogoutPublicURL is the page that a browser opens after a logout.
	LogoutPublicURL string `json:"logoutPublicURL"`
	// AdminConsolePublicURL is the address of a separate console for administrators.
	AdminConsolePublicURL string `json:"adminConsolePublicURL"`
}

// extensions lists the scripts and style sheets that the console's page loads.
type extensions struct {
	ScriptURLs     []string `json:"scriptURLs"`
	StylesheetURLs []string `json:"stylesheetURLs"`
	// Properties are available to scripts as window.OPENSHIFT_EXTENSION_PROPERTIES.
	Properties map[string]string `json:"properties"`
}

// parseSettings parses and validates a WebConsoleConfiguration. It reports all errors together,
// each with its key.
func parseSettings(text string) (*settings, error) {
	read := &settings{}
	if err := yaml.UnmarshalStrict([]byte(text), read); err != nil {
		return nil, err
	}
	var errs []error
	if read.Kind != "" && read.Kind != "WebConsoleConfiguration" {
		errs = append(errs, fmt.Errorf("kind: %q is not WebConsoleConfiguration", read.Kind))
	}
	if read.Features.InactivityTimeoutMinutes < 0 {
		errs = append(errs, errors.New("features.inactivityTimeoutMinutes: write 0 or a number of minutes"))
	}
	info := &read.ClusterInfo
	for key, address := range map[string]*string{
		"consolePublicURL": &info.ConsolePublicURL, "masterPublicURL": &info.MasterPublicURL, "loggingPublicURL": &info.LoggingPublicURL,
		"metricsPublicURL": &info.MetricsPublicURL, "logoutPublicURL": &info.LogoutPublicURL, "adminConsolePublicURL": &info.AdminConsolePublicURL,
	} {
		if *address != "" {
			errs = append(errs, checkAddress("clusterInfo."+key, *address))
		}
	}
	if public, err := url.Parse(info.ConsolePublicURL); err == nil && public.Host != "" && public.Path+"/" != Path && public.Path != Path {
		errs = append(errs, fmt.Errorf("clusterInfo.consolePublicURL: the path of %q must be %s", info.ConsolePublicURL, Path))
	}
	if public, err := url.Parse(info.MasterPublicURL); err == nil && strings.Trim(public.Path, "/") != "" {
		errs = append(errs, fmt.Errorf("clusterInfo.masterPublicURL: %q has a path", info.MasterPublicURL))
	}
	for i, address := range read.Extensions.ScriptURLs {
		errs = append(errs, checkAddress(fmt.Sprintf("extensions.scriptURLs[%d]", i), address))
	}
	for i, address := range read.Extensions.StylesheetURLs {
		errs = append(errs, checkAddress(fmt.Sprintf("extensions.stylesheetURLs[%d]", i), address))
	}
	return read, utilerrors.NewAggregate(errs)
}

// checkAddress returns an error if an address is not an https URL, or if a content security policy
// cannot contain it.
func checkAddress(key, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsAny(address, "; ,'\"*") {
		return fmt.Errorf("%s: %q is not an https URL such as https://www.example.com/extension.js", key, address)
	}
	return nil
}

// source returns the URL as a content security policy source expression that allows one file.
func source(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.RawQuery, u.Fragment = "", "" // a CSP source expression has neither
	return u.String()
}

// policy returns the content security policy for pages.
func (s *settings) policy() string {
	allowed := func(addresses []string) string {
		var all strings.Builder
		for _, address := range addresses {
			all.WriteString(" " + source(address))
		}
		return all.String()
	}
	return fmt.Sprintf(contentPolicy, allowed(s.Extensions.ScriptURLs), allowed(s.Extensions.StylesheetURLs))
}

// origin returns the scheme and host of an address without its path.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// masterURL returns the API server's address for browsers.
func (s *server) masterURL() string {
	if configured := s.settings().ClusterInfo.MasterPublicURL; configured != "" {
		return origin(configured)
	}
	return s.PublicURL
}

// consoleURL returns the console's address for browsers, without its path.
func (s *server) consoleURL() string {
	if configured := s.settings().ClusterInfo.ConsolePublicURL; configured != "" {
		return origin(configured)
	}
	return s.masterURL()
}
