package bigiptest

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/slipway-platform/slipway/internal/certtest"
)

// Credentials of the appliance's user.
const (
	User     = "admin"
	Password = "s3cret-of-the-appliance"
)

// Names of the virtual servers that every appliance has, as in OpenShift 3.
const (
	HTTPServer  = "/Common/ose-vserver"
	HTTPSServer = "/Common/https-ose-vserver"
)

// Options configures an appliance.
type Options struct {
	// Version is the TMOS version. The default is 12.1.2.
	Version string
	// Unlicensed omits the sdn-services license.
	Unlicensed bool
	// Listen and Dial open the appliance's sockets. The default is this process's network.
	Listen func(network, address string) (net.Listener, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	// Host is the address on which the appliance listens. The default is 127.0.0.1.
	Host string
	// Network, if set, is called with the appliance's network after each change to it.
	Network func(Network)
}

// Appliance is a running appliance.
type Appliance struct {
	// Authority is the CA that signed the management interface's certificate.
	Authority *certtest.Authority
	// Management, HTTP and HTTPS are the addresses of the management interface and of the virtual
	// servers.
	Management, HTTP, HTTPS string

	options Options

	mu       sync.Mutex
	objects  map[string]*object // objects by path
	files    map[string][]byte  // uploaded files by path
	requests []string           // requests that made changes, as method and path
	next     map[string]int     // index of each pool's next member
	down     bool
}

// New starts an appliance that stops at the end of the test.
func New(t testing.TB, options Options) *Appliance {
	t.Helper()
	if options.Version == "" {
		options.Version = "12.1.2"
	}
	if options.Host == "" {
		options.Host = "127.0.0.1"
	}
	if options.Listen == nil {
		options.Listen = net.Listen
	}
	if options.Dial == nil {
		options.Dial = (&net.Dialer{}).DialContext
	}
	a := &Appliance{Authority: certtest.New(t), options: options, files: map[string][]byte{}, next: map[string]int{}}
	a.Reset()
	pair := a.Authority.Issue(t, "appliance")
	certificate, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	management := tls.NewListener(a.listen(t, &a.Management), &tls.Config{Certificates: []tls.Certificate{certificate}})
	a.serve(t, management, a)
	a.serve(t, a.listen(t, &a.HTTP), http.HandlerFunc(a.serveHTTP))
	secure := newSecure(a, a.listen(t, &a.HTTPS), certificate)
	a.serve(t, secure, http.HandlerFunc(a.serveHTTPS))
	return a
}

func (a *Appliance) listen(t testing.TB, address *string) net.Listener {
	t.Helper()
	listener, err := a.options.Listen("tcp", net.JoinHostPort(a.options.Host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	*address = listener.Addr().String()
	return listener
}

// serve serves requests on a listener until the end of the test.
func (a *Appliance) serve(t testing.TB, listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ErrorLog: silent()}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = server.Serve(listener) // Serve fails when the server is closed
	}()
	t.Cleanup(func() { _ = server.Close(); <-stopped })
}

// silent returns a logger that discards messages about the failed connections that tests provoke.
func silent() *log.Logger { return log.New(io.Discard, "", 0) }

// Reset discards the configuration, like a restart of an appliance whose configuration was not
// saved.
func (a *Appliance) Reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.objects = map[string]*object{}
	a.put("sys/folder", "/Common", nil)
	for _, profile := range []string{"http", "clientssl", "serverssl"} {
		a.put("ltm/profile/"+profile, "/Common/"+profile, nil)
	}
	for _, server := range []string{HTTPServer, HTTPSServer} {
		a.put("ltm/virtual", server, nil)
	}
	a.attach(HTTPServer, "/Common/http", "all")
	a.attach(HTTPSServer, "/Common/http", "all")
	a.attach(HTTPSServer, "/Common/clientssl", "clientside")
	a.attach(HTTPSServer, "/Common/serverssl", "serverside")
}

func (a *Appliance) attach(server, profile, context string) {
	a.put("ltm/virtual/"+escape(server)+"/profiles", profile, map[string]any{"context": context})
}

// SetDown makes the management interface fail all requests, or makes it work again.
func (a *Appliance) SetDown(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
}

// Delete deletes an object, as an administrator could.
func (a *Appliance) Delete(collection, fullPath string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(collection + "/" + escape(fullPath))
}

// Changes returns the requests that made changes since the last call, such as "POST ltm/pool".
func (a *Appliance) Changes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	requests := a.requests
	a.requests = nil
	return requests
}

// Names returns the full paths of a collection's objects, sorted.
func (a *Appliance) Names(collection string) (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, object := range a.list(collection) {
		names = append(names, object.fullPath)
	}
	return names
}

// Files returns the paths of the uploaded files that have not been removed.
func (a *Appliance) Files() (paths []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for path := range a.files {
		paths = append(paths, path)
	}
	return paths
}

// Attribute returns an object's attribute, or nil.
func (a *Appliance) Attribute(collection, fullPath, name string) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	if object := a.objects[collection+"/"+escape(fullPath)]; object != nil {
		return object.attributes[name]
	}
	return nil
}

// AttachProfile adds a client profile for a server name, as an administrator could.
func (a *Appliance) AttachProfile(fullPath, serverName string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.put("ltm/profile/client-ssl", fullPath, map[string]any{"serverName": serverName})
	a.attach(HTTPSServer, fullPath, "clientside")
}
