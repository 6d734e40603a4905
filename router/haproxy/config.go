package haproxy

import (
	"bytes"
	"maps"
	"strconv"
	"strings"
)

// Config is an HAProxy configuration. Changes to the frame and the files need a reload. Changes to
// tables and servers can use the runtime interface. A Config is immutable and shares unchanged
// parts with the previous Config.
type Config struct {
	// Frame is the configuration text before the backends.
	Frame string
	// Backends contains the backends, sorted by name.
	Backends []*Backend
	// Tables contains the tables that map hosts and paths to backend names, keyed by the path of the
	// table's file relative to the working directory.
	Tables map[string][]Entry
	// Certificates maps hosts to their certificate files, with options.
	Certificates []Entry
	// Files contains additional files, such as certificates and error pages, keyed by path relative
	// to the working directory.
	Files map[string][]byte
	// Shapes lists the shapes of the backends for routes without annotations.
	Shapes []string
	// whole, if set, is the output of a custom template. It replaces the frame and the backends.
	whole string
}

// Entry is an entry in a table or in the certificate list.
type Entry struct{ Key, Value string }

// Backend is an HAProxy backend with its servers.
type Backend struct {
	Name string
	// Shape is the backend's text, with keyMark in place of Key. Many backends share a shape.
	Shape, Key string
	Servers    []Server
	// Cookie indicates whether a cookie binds clients to the same server.
	Cookie bool
}

// keyMark is the placeholder for a backend's key in its shape. Settings and annotations never
// contain this byte.
const keyMark = "\x00"

// Server is a server in a backend. Checked enables health checks. If a backend has only one server,
// the server is not checked, because HAProxy has no alternative to the server.
type Server struct {
	Name, IP, Port string
	Weight         int32
	Options        string
	Checked        bool
}

// Text returns the complete configuration.
func (c *Config) Text() string {
	if c.whole != "" {
		return c.whole
	}
	var text strings.Builder
	text.WriteString(c.Frame)
	for _, backend := range c.Backends {
		backend.write(&text)
	}
	return text.String()
}

// text returns the backend without its servers.
func (b *Backend) text() string {
	return "\nbackend " + b.Name + "\n" + strings.ReplaceAll(b.Shape, keyMark, b.Key)
}

func (b *Backend) write(text *strings.Builder) {
	text.WriteString(b.text())
	for _, server := range b.Servers {
		for _, word := range []string{
			"  server ", server.Name, " ", server.address(), " weight ",
			strconv.Itoa(int(server.Weight)), " ", server.Options, "\n",
		} {
			text.WriteString(word)
		}
	}
}

// files returns all files, keyed by path relative to the working directory.
func (c *Config) files() map[string][]byte {
	all := maps.Clone(c.Files)
	for path, table := range c.Tables {
		all[path] = lines(table, func(e Entry) string { return e.Key + " " + e.Value })
	}
	if c.Tables != nil {
		all[certificateListFile] = c.certificateList()
	}
	return all
}

// certificateList returns the certificate list in HAProxy's format.
func (c *Config) certificateList() []byte {
	return lines(c.Certificates, func(e Entry) string { return e.Value + " " + e.Key })
}

// certificateOf returns the path of the certificate file in a certificate list entry.
func certificateOf(entry Entry) string {
	file, _, _ := strings.Cut(entry.Value, " ")
	return file
}

func lines(table []Entry, line func(Entry) string) []byte {
	var text bytes.Buffer
	for _, entry := range table {
		text.WriteString(line(entry))
		text.WriteByte('\n')
	}
	return text.Bytes()
}

func (s Server) address() string {
	if strings.Contains(s.IP, ":") {
		return "[" + s.IP + "]:" + s.Port
	}
	return s.IP + ":" + s.Port
}
