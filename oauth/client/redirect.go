package client

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Redirect returns the redirect URI for a response. If the request contains a URI, it must be equal
// to one of the client's URIs or be below one of them. If the request contains no URI, the client
// must have exactly one URI. Otherwise, Redirect returns an error, and the caller must not
// redirect.
func (c *Client) Redirect(query string) (string, error) {
	if query == "" {
		if len(c.RedirectURIs) != 1 {
			return "", errors.New("redirect_uri is missing, and the client does not have exactly one redirect URI")
		}
		return c.RedirectURIs[0], nil
	}
	target, err := parseRedirect(query)
	if err != nil {
		return "", err
	}
	for _, text := range c.RedirectURIs {
		if base, err := parseRedirect(text); err == nil && below(base, target) {
			return query, nil
		}
	}
	return "", errors.New("redirect_uri is not registered for the client")
}

// parseRedirect parses an absolute URI. It rejects URIs that browsers would interpret differently.
func parseRedirect(text string) (*url.URL, error) {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }) {
		return nil, errors.New("redirect_uri contains a character that a URI cannot have")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("redirect_uri is not a URI")
	case !u.IsAbs() || u.Opaque != "" || u.Host == "" && slices.Contains([]string{"http", "https"}, u.Scheme):
		return nil, errors.New("redirect_uri must be an absolute URI")
	case slices.Contains([]string{"javascript", "data", "vbscript", "file"}, u.Scheme):
		return nil, fmt.Errorf("redirect_uri has the scheme %s, which is not allowed", u.Scheme)
	case strings.Contains(text, "#"):
		return nil, errors.New("redirect_uri must not have a fragment")
	case u.User != nil:
		return nil, errors.New("redirect_uri must not have a user name")
	case slices.ContainsFunc(strings.FieldsFunc(u.Path, separator), func(part string) bool { return part == ".." }):
		return nil, errors.New("redirect_uri must not have .. in its path")
	}
	return u, nil
}

// separator reports whether a server might treat a character in a decoded path as the end of a path
// segment. Some servers treat a backslash as a slash, and some ignore everything after a semicolon.
func separator(r rune) bool { return r == '/' || r == '\\' || r == ';' }

// below reports whether target is base or a path below base: /app/x is below https://host/app, but
// /apple is not.
func below(base, target *url.URL) bool {
	if base.Scheme != target.Scheme || base.Host != target.Host {
		return false
	}
	if base.RawQuery != "" && base.RawQuery != target.RawQuery {
		return false
	}
	return base.Path == target.Path || strings.HasPrefix(target.Path+"/", strings.TrimSuffix(base.Path, "/")+"/")
}
