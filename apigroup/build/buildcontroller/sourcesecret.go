package buildcontroller

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
)

// sourceSecret returns the secret whose annotation best matches a repository's URL, or nil if no
// secret matches.
//
// Source: OpenShift 3.11, source clone secrets. An annotation has the form
// <scheme>://<host>/<path>, where * matches any scheme, *.<domain> matches any host in a domain,
// and * in the path matches any text. The longest matching pattern takes precedence.
func sourceSecret(secrets []corev1.Secret, repository string) *corev1.LocalObjectReference {
	address, ok := parseRepository(repository)
	if !ok {
		return nil
	}
	type match struct{ pattern, secret string }
	var matches []match
	for _, secret := range secrets {
		for name, pattern := range secret.Annotations {
			if strings.HasPrefix(name, buildv1.BuildSourceSecretMatchURIAnnotationPrefix) && matchesRepository(pattern, address) {
				matches = append(matches, match{pattern, secret.Name})
			}
		}
	}
	if len(matches) == 0 {
		return nil
	}
	best := slices.MinFunc(matches, func(a, b match) int {
		return cmp.Or(cmp.Compare(len(b.pattern), len(a.pattern)), cmp.Compare(a.secret, b.secret))
	})
	return &corev1.LocalObjectReference{Name: best.secret}
}

// parseRepository parses a repository's URL. It also supports the form user@host:path.
func parseRepository(repository string) (*url.URL, bool) {
	if !strings.Contains(repository, "://") {
		host, rest, ok := strings.Cut(repository, ":")
		if !ok || strings.Contains(host, "/") {
			return nil, false
		}
		repository = "ssh://" + host + "/" + strings.TrimPrefix(rest, "/")
	}
	address, err := url.Parse(repository)
	return address, err == nil && address.Host != ""
}

// matchesRepository reports whether a pattern matches a repository's URL.
func matchesRepository(pattern string, address *url.URL) bool {
	scheme, rest, ok := strings.Cut(pattern, "://")
	if !ok || scheme != "*" && scheme != address.Scheme {
		return false
	}
	host, pathPattern, _ := strings.Cut(rest, "/")
	if domain, ok := strings.CutPrefix(host, "*."); ok {
		if !strings.HasSuffix(strings.ToLower(address.Hostname()), "."+strings.ToLower(domain)) {
			return false
		}
	} else if host != "*" && !strings.EqualFold(host, address.Host) {
		return false
	}
	// Servers resolve "..", so a path with ".." can be outside the pattern's directory.
	if slices.Contains(strings.Split(address.Path, "/"), "..") {
		return false
	}
	return glob(pathPattern, strings.TrimPrefix(address.Path, "/"))
}

// glob reports whether text matches a pattern in which * matches any text.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
