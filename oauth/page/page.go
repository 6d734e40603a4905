// Package page renders the OAuth server's pages: login, provider selection, grant, token, logout
// and error. The pages require no scripts and fit small screens. Templates (oauthConfig.templates)
// can replace three of them. A template receives the same fields as in OpenShift 3.
package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"strings"
)

// The pages.
const (
	Login     = "login"
	Providers = "providers"
	Error     = "error"
	Grant     = "grant"
	Token     = "token"
	Request   = "request"
	Implicit  = "implicit"
	Logout    = "logout"
)

//go:embed *.html
var files embed.FS

// Templates contains paths to files that replace pages. All are optional.
type Templates struct{ Login, Providers, Error string }

// Pages renders pages.
type Pages struct{ pages map[string]*template.Template }

// New returns the pages. It uses the built-in templates, unless custom contains a replacement. It
// fails if a file cannot be read or parsed.
func New(custom Templates) (*Pages, error) {
	p := &Pages{pages: map[string]*template.Template{}}
	for _, name := range []string{Login, Providers, Error, Grant, Token, Request, Implicit, Logout} {
		tmpl, err := template.ParseFS(files, "layout.html", name+".html")
		if err != nil {
			return nil, fmt.Errorf("read page %q: %w", name, err)
		}
		p.pages[name] = tmpl
	}
	for name, file := range map[string]string{Login: custom.Login, Providers: custom.Providers, Error: custom.Error} {
		if file == "" {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read template of page %q: %w", name, err)
		}
		if p.pages[name], err = template.New("layout.html").Parse(string(content)); err != nil {
			return nil, fmt.Errorf("parse template %q of page %q: %w", file, name, err)
		}
	}
	return p, nil
}

// Source returns a page's source as a single template, which an administrator can save and
// customize.
func Source(name string) (string, error) {
	layout, err := files.ReadFile("layout.html")
	if err != nil {
		return "", fmt.Errorf("read page %q: %w", name, err)
	}
	content, err := files.ReadFile(name + ".html")
	if err != nil {
		return "", fmt.Errorf("read page %q: %w", name, err)
	}
	return string(content) + string(layout), nil
}

// Show writes a page with its data. If the template fails, the response contains no details of the
// error.
func (p *Pages) Show(w http.ResponseWriter, status int, name string, data any) {
	var content bytes.Buffer
	if err := p.pages[name].ExecuteTemplate(&content, "layout.html", data); err != nil {
		http.Error(w, "The page cannot be rendered: its template has an error.", http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	if header.Get("Content-Security-Policy") == "" {
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data: https:; form-action 'self' https:; base-uri 'none'; frame-ancestors 'none'")
	}
	w.WriteHeader(status)
	_, _ = w.Write(content.Bytes())
}

// Harden sets a response's security headers: no caching, no framing, no content sniffing and no
// referrer.
func Harden(header http.Header) {
	header.Set("Cache-Control", "no-cache, no-store, max-age=0, must-revalidate")
	header.Set("Expires", "Fri, 01 Jan 1990 00:00:00 GMT")
	header.Set("Pragma", "no-cache")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Dns-Prefetch-Control", "off")
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Xss-Protection", "1; mode=block")
}

// WantsPage reports whether a request comes from a browser, which accepts HTML.
func WantsPage(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// Problem contains the data for the error page.
type Problem struct {
	// Error is a sentence for the user. ErrorCode is a code for the administrator.
	Error, ErrorCode string
}

// Fail sends an error: as a page to a browser, and as plain text to other clients.
func (p *Pages) Fail(w http.ResponseWriter, r *http.Request, status int, problem Problem) {
	if WantsPage(r) {
		p.Show(w, status, Error, problem)
		return
	}
	http.Error(w, problem.Error, status)
}
