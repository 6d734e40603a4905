package attack

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// insideSecret is the response of an internal server. No tenant may be able to read it.
const insideSecret = "inside-secret"

// serve runs a server on a listener until the test ends, and returns its URL.
func serve(t *testing.T, listener net.Listener, err error, handle http.HandlerFunc) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handle, ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// distant runs a server in a network outside the cluster, and returns its host and port.
func (s *stage) distant(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(s.Distant.String(), "0"))
	return strings.TrimPrefix(serve(t, listener, err, handle), "http://")
}

// look requests an image import as Mallory, without saving the image, and returns the image's
// status from the response.
func (s *stage) look(t *testing.T, from string) metav1.Status {
	t.Helper()
	response := s.mallory.May("POST", kit.GroupPath("image.openshift.io", s.evil, "imagestreamimports"), fmt.Sprintf(
		`{apiVersion: image.openshift.io/v1, kind: ImageStreamImport, metadata: {name: look}, spec: {images: [
			{from: {kind: DockerImage, name: %q}, importPolicy: {insecure: true}, includeManifest: true}]}}`, from))
	var done imagev1.ImageStreamImport
	if err := json.Unmarshal([]byte(response), &done); err != nil || len(done.Status.Images) != 1 {
		t.Fatalf("%v: %s", err, response)
	}
	if strings.Contains(response, insideSecret) {
		t.Errorf("mallory got the response of an internal server: %s", response)
	}
	return done.Status.Images[0].Status
}

// inside runs internal servers that only the cluster's machine can reach. It returns their
// addresses and a counter of the requests to them.
func (s *stage) inside(t *testing.T) (addresses []string, requests *atomic.Int32) {
	t.Helper()
	requests = &atomic.Int32{}
	for _, host := range []string{"127.0.0.1", "::1", s.Address.String()} {
		listener, err := s.Listen("tcp", net.JoinHostPort(host, "0"))
		url := serve(t, listener, err, func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(insideSecret))
		})
		addresses = append(addresses, strings.TrimPrefix(url, "http://"))
	}
	return addresses, requests
}

// spelled adds other notations of an internal server's address, and further addresses of the host
// and the cluster.
func (s *stage) spelled(addresses []string) []string {
	_, port, _ := net.SplitHostPort(addresses[0])
	return append(addresses,
		"localhost:"+port, "[::ffff:7f00:1]:"+port, "0.0.0.0:"+port, "127.8.8.8:"+port, "[64:ff9b::7f00:1]:"+port,
		s.Address.String()+":8443", s.Address.String()+":10250", "169.254.169.254", "169.254.20.10:53", s.Gateway.String()+":1", "172.30.0.1:443", "10.128.0.1:80",
	)
}

func TestImportCannotReachHostAndCluster(t *testing.T) {
	s := tenants(t)
	addresses, requests := s.inside(t)
	for _, address := range s.spelled(addresses) {
		status := s.look(t, address+"/team/app:v1")
		if status.Reason != metav1.StatusReasonForbidden || !strings.Contains(status.Message, "slipway.outbound") {
			t.Errorf("%s: %+v", address, status)
		}
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("internal servers received %d requests", n)
	}
}

// detect requests, as Mallory, that the API server detect a repository's type. The response must be
// an error, which detect returns.
func (s *stage) detect(t *testing.T, project, uri string) string {
	t.Helper()
	response, err := s.mallory.Rest.Get().AbsPath("/slipway/source").Param("namespace", project).Param("uri", uri).Do(t.Context()).Raw()
	if err == nil {
		t.Errorf("%s contains %s", uri, response)
	}
	if strings.Contains(string(response)+fmt.Sprint(err), insideSecret) {
		t.Errorf("the response contains the response of an internal server: %s", response)
	}
	return string(response)
}

func TestDetectionOfSourceCannotReachHostAndCluster(t *testing.T) {
	s := tenants(t)
	addresses, requests := s.inside(t)
	for _, address := range s.spelled(addresses) {
		if response := s.detect(t, s.evil, "http://"+address+"/app.git"); !strings.Contains(response, "slipway.outbound") {
			t.Errorf("%s: %s", address, response)
		}
	}
	for _, inside := range addresses {
		outside := s.distant(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+inside+r.URL.Path, http.StatusTemporaryRedirect)
		})
		if response := s.detect(t, s.evil, "http://"+outside+"/app.git"); !strings.Contains(response, "slipway.outbound") {
			t.Errorf("a redirect to %s: %s", inside, response)
		}
	}
	other := s.distant(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	if response := s.detect(t, s.shop, "http://"+other+"/app.git"); !strings.Contains(response, "cannot create buildconfigs") {
		t.Errorf("the project of another tenant: %s", response)
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("servers received %d requests", n)
	}
}

func TestImportIsNotRedirectedToHost(t *testing.T) {
	s := tenants(t)
	addresses, requests := s.inside(t)
	for name, respond := range map[string]func(w http.ResponseWriter, r *http.Request, inside string){
		"redirect": func(w http.ResponseWriter, r *http.Request, inside string) {
			http.Redirect(w, r, "http://"+inside+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"token": func(w http.ResponseWriter, _ *http.Request, inside string) {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="s"`, inside))
			w.WriteHeader(http.StatusUnauthorized)
		},
	} {
		for _, inside := range addresses {
			registry := s.distant(t, func(w http.ResponseWriter, r *http.Request) {
				if name == "redirect" && r.URL.Path == "/v2/" {
					return
				}
				respond(w, r, inside)
			})
			if status := s.look(t, registry+"/team/app:v1"); status.Status != metav1.StatusFailure {
				t.Errorf("%s to %s: %+v", name, inside, status)
			}
		}
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("internal servers received %d requests", n)
	}
}

func TestErrorsContainNoTextOfRegistry(t *testing.T) {
	s := tenants(t)
	registry := s.distant(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return
		}
		w.Header().Set("Content-Type", "text/"+insideSecret)
		if strings.HasSuffix(r.URL.Path, "/refused") {
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(`{"errors": [{"code": "` + insideSecret + `", "message": "` + insideSecret + `"}]}`))
			return
		}
		_, _ = w.Write([]byte(insideSecret))
	})
	if status := s.look(t, registry+"/team/app:refused"); !strings.Contains(status.Message, "418") {
		t.Errorf("%+v", status) // look checks that the status does not contain the secret
	}
	if status := s.look(t, registry+"/team/app:strange"); status.Status != metav1.StatusFailure {
		t.Errorf("%+v", status)
	}
}
