package oauth

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

// restarts kills the control plane after each step of a login. The login must succeed anyway.
func restarts(t *testing.T, _ *fixture, s *server) {
	browser := s.browser()
	authorize := s.do(browser, http.MethodGet, "/oauth/token/request", nil, nil).location(t)
	form := s.do(browser, http.MethodGet, "/login/file?"+url.Values{"then": {authorize.RequestURI()}}.Encode(), nil, nil).fields()
	s.restart()
	form.Set("username", "developer")
	form.Set("password", s.DeveloperPassword())
	back := s.do(browser, http.MethodPost, "/login/file", form, nil).location(t)
	s.restart() // the browser's cookie contains the session
	display := s.do(browser, http.MethodGet, back.String(), nil, nil).location(t)
	button := s.do(browser, http.MethodGet, display.String(), nil, nil)
	s.restart() // etcd contains the code
	page := s.do(browser, http.MethodPost, "/oauth/token/display", button.fields(), nil)
	_, rest, ok := strings.Cut(page.body, "<pre>sha256~")
	secret, _, _ := strings.Cut(rest, "<")
	if !ok {
		t.Fatalf("%s: %s", page.Status, page.body)
	}
	if got := s.do(s.browser(), http.MethodGet, "/apis/user.openshift.io/v1/users/~", nil, bearer("sha256~"+secret)); got.StatusCode != http.StatusOK {
		t.Errorf("the token: %s", got.Status)
	}
	s.checkLogs(map[string]string{
		"password": s.DeveloperPassword(), "token": secret, "code": strings.TrimPrefix(display.Query().Get("code"), "sha256~"), "value of the form": form.Get("csrf"),
	})
}

// restart kills the control plane and waits until the API server is ready again.
func (s *server) restart() {
	s.t.Helper()
	s.Kill("control-plane")
	s.WaitFor("the server after a restart", func(ctx context.Context) error {
		_, err := s.Client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
}

// checkLogs checks that no log, including the audit log, contains a secret.
func (s *server) checkLogs(secrets map[string]string) {
	s.t.Helper()
	files, err := os.ReadDir(s.Path("log"))
	if err != nil {
		s.t.Fatal(err)
	}
	audited := false
	for _, file := range files {
		content, err := os.ReadFile(s.Path("log", file.Name()))
		if err != nil {
			s.t.Fatal(err)
		}
		audited = audited || file.Name() == "audit.log" && len(content) > 0
		for name, secret := range secrets {
			if secret != "" && strings.Contains(string(content), secret) {
				s.t.Errorf("%s contains the %s", file.Name(), name)
			}
		}
	}
	if !audited {
		s.t.Error("the audit log is missing")
	}
}
