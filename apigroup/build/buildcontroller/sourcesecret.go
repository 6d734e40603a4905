package buildcontroller

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
)

// sourceSecret is, among secrets, the one whose annotations match the address of a repository best; nil where none does.
//
// Source: OpenShift 3.11, source clone secrets: an annotation is <scheme>://<host>/<path>, where * stands for any scheme, *.<domain> for
// any host of a domain, and * in the path for anything; the longest match counts.
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

// parseRepository reads the address of a repository, which may have the form user@host:path.
func parseRepository(repository string) (*url.URL, bool) {
	if !strings.Contains(repository, "://") {
		host, rest, found := strings.Cut(repository, ":")
		if !found || strings.Contains(host, "/") {
			return nil, false
		}
		repository = "ssh://" + host + "/" + strings.TrimPrefix(rest, "/")
	}
	address, err := url.Parse(repository)
	return address, err == nil && address.Host != ""
}

// matchesRepository says whether an address is of a pattern.
func matchesRepository(pattern string, address *url.URL) bool {
	scheme, rest, found := strings.Cut(pattern, "://")
	if !found || scheme != "*" && scheme != address.Scheme {
		return false
	}
	host, below, _ := strings.Cut(rest, "/")
	if domain, any := strings.CutPrefix(host, "*."); any {
		if !strings.HasSuffix(strings.ToLower(address.Hostname()), "."+strings.ToLower(domain)) {
			return false
		}
	} else if host != "*" && !strings.EqualFold(host, address.Host) {
		return false
	}
	if slices.Contains(strings.Split(address.Path, "/"), "..") { // servers resolve it, and it would lead out of the pattern's folder
		return false
	}
	return glob(below, strings.TrimPrefix(address.Path, "/"))
}

// glob matches text with a pattern in which * is any text.
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
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
