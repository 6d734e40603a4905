package build

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNewImageStartsBuildAndOldBuildsArePruned(t *testing.T) {
	p := newProject(t)
	p.configure("app", "", git+`, successfulBuildsHistoryLimit: 1, triggers: [{type: ConfigChange}, {type: ImageChange}]`)
	p.waitPhase("app-1", "Complete")
	first := p.OC("get", "istag/builder:latest", "-o", "jsonpath={.image.dockerImageReference}")
	p.waitOutput("bc/app", "{.status.lastVersion} {.spec.triggers[1].imageChange.lastTriggeredImageID}", "1 "+first)

	p.push("builder:latest", "echo another builder")
	p.waitPhase("app-2", "Complete")
	if got := p.OC("logs", "bc/app"); got != "another builder\n" {
		t.Errorf("the second build prints %q", got)
	}
	if got := p.OC("get", "build/app-2", "-o", "jsonpath={.spec.triggeredBy[0].message}/{.spec.triggeredBy[0].imageChangeBuild.fromRef.name}"); got != "Image change/builder:latest" {
		t.Errorf("the cause of the second build is %s", got)
	}
	p.WaitFor("the first build to be removed with its pod", func(context.Context) error {
		if got := p.OC("get", "builds,pods", "-o", "name"); strings.Contains(got, "app-1") {
			return fmt.Errorf("there are %s", got)
		}
		return nil
	})

	p.OC("annotate", "bc/app", "openshift.io/build-config.paused=true")
	if _, err := p.TryOC("start-build", "app"); err == nil || !strings.Contains(err.Error(), "paused") {
		t.Errorf("a paused configuration starts a build: %v", err)
	}
}

func TestHostsOfRepositoriesCallWebHooks(t *testing.T) {
	p := newProject(t)
	word := filepath.Join(t.TempDir(), "word")
	if err := os.WriteFile(word, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.OC("secrets", "new", "hook", "WebHookSecretKey="+word)
	p.OC("secrets", "link", "builder", "hook", "--for=pull,mount")
	if got := p.OC("get", "sa/builder", "-o", "jsonpath={.secrets[*].name} {.imagePullSecrets[*].name}"); strings.Count(got+" ", "hook ") != 2 {
		t.Errorf("the account uses %s", got)
	}
	p.OC("secrets", "unlink", "builder", "hook")
	if got := p.OC("get", "sa/builder", "-o", "jsonpath={.secrets[*].name} {.imagePullSecrets[*].name}"); strings.Contains(got+" ", "hook ") || got == " " {
		t.Errorf("without the secret, the account uses %s", got)
	}
	p.configure("app", "", git+`, runPolicy: Parallel, triggers: [{type: Generic, generic: {secretReference: {name: hook}, allowEnv: true}},
		{type: GitHub, github: {secret: plain}}, {type: GitLab, gitlab: {secretReference: {name: hook}}}, {type: Bitbucket, bitbucket: {secret: plain}}]`)
	call := func(address string, header map[string]string, body string) (status int, message string) {
		t.Helper()
		url := fmt.Sprintf("https://%s:8443/apis/build.openshift.io/v1/namespaces/%s/buildconfigs/%s", p.Address, p.Namespace, address)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		for name, value := range header {
			request.Header.Set(name, value)
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.authority()}}}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	push := map[string]string{"X-GitHub-Event": "push"}
	const body = `{"ref": "refs/heads/%s", "head_commit": {"id": "0123456789abcdef", "message": "fix"}}`
	signPush := func(secret, branch string) map[string]string { // returns a signed push's headers
		sum := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(sum, body, branch)
		return map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=" + hex.EncodeToString(sum.Sum(nil))}
	}
	for _, tt := range []struct {
		address, body string
		header        map[string]string
		status        int
		response      string
	}{
		{"app/webhooks/s3cret/generic", `{"env": [{"name": "WORD", "value": "sent"}]}`, nil, http.StatusOK, `"app-1"`},
		{"app/webhooks/plain/github", fmt.Sprintf(body, "main"), push, http.StatusOK, `"app-2"`},
		{"app/webhooks/plain/github", fmt.Sprintf(body, "other"), push, http.StatusOK, "skipping build"},
		{"app/webhooks/plain/github", "{}", map[string]string{"X-GitHub-Event": "ping"}, http.StatusOK, "pong"},
		{"app/webhooks/plain/github", "{}", map[string]string{"X-GitHub-Event": "issues"}, http.StatusBadRequest, "unknown X-GitHub-Event"},
		{"app/webhooks/plain/github", strings.Repeat(" ", 4<<20+1), push, http.StatusRequestEntityTooLarge, ""},
		{"app/webhooks/wrong/github", fmt.Sprintf(body, "main"), push, http.StatusUnauthorized, "did not accept your secret"},
		{"app/webhooks/plain/generic", "{}", nil, http.StatusUnauthorized, "did not accept your secret"},
		{"none/webhooks/plain/generic", "{}", nil, http.StatusUnauthorized, "did not accept your secret"},
		{"app/webhooks/github", fmt.Sprintf(body, "main"), push, http.StatusUnauthorized, "did not accept your secret"},
		{"app/webhooks/github", fmt.Sprintf(body, "main"), signPush("wrong", "main"), http.StatusUnauthorized, "did not accept your secret"},
		{"app/webhooks/plain/github", fmt.Sprintf(body, "main"), signPush("plain", "other"), http.StatusUnauthorized, "did not accept your secret"},
		{"app/webhooks/github", fmt.Sprintf(body, "main"), signPush("plain", "main"), http.StatusOK, `"app-3"`},
		{"app/webhooks/gitlab", fmt.Sprintf(body, "main"), map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": "s3cret"}, http.StatusOK, `"app-4"`},
		{"app/webhooks/gitlab", fmt.Sprintf(body, "main"), map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": "plain"}, http.StatusUnauthorized, ""},
		{"app/webhooks/plain/bitbucket", "{}", map[string]string{"X-Event-Key": "diagnostics:ping", "X-Hub-Signature": "sha256=00"}, http.StatusUnauthorized, ""},
		{"app/webhooks/generic", "{}", nil, http.StatusUnauthorized, "did not accept your secret"},
		{"app/webhooks/plain/subversion", "{}", nil, http.StatusNotFound, ""},
	} {
		if status, response := call(tt.address, tt.header, tt.body); status != tt.status || !strings.Contains(response, tt.response) {
			t.Errorf("%s with %.40q returns %d %s, want %d %s", tt.address, tt.body, status, response, tt.status, tt.response)
		}
	}
	if got := p.OC("get", "build/app-2", "-o", "jsonpath={.spec.revision.git.commit} {.spec.triggeredBy[0].message} {.spec.triggeredBy[0].githubWebHook.secret}"); got !=
		"0123456789abcdef GitHub WebHook ***" {
		t.Errorf("the cause of the build is %s", got)
	}
	if got := p.OC("get", "build/app-1", "-o", "jsonpath={.spec.strategy.customStrategy.env[?(@.name=='WORD')].value}"); got != "sent" {
		t.Errorf("the build got %q", got)
	}
	hook := fmt.Sprintf("https://%s:8443/apis/build.openshift.io/v1/namespaces/%s/buildconfigs/app/webhooks/s3cret/generic", p.Address, p.Namespace)
	p.OC("start-build", "--from-webhook="+hook, "--env=WORD=called")
	p.waitOutput("build/app-5", "{.spec.strategy.customStrategy.env[?(@.name=='WORD')].value}", "called")
}

func TestImageOfOtherProjectNeedsPullRight(t *testing.T) {
	p := newProject(t)
	other := p.Namespace + "-other"
	p.OC("new-project", other, "--skip-config-write")
	p.OC("tag", p.Namespace+"/builder:latest", other+"/builder:latest")
	p.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: app}, spec: {
		strategy: {customStrategy: {from: {kind: ImageStreamTag, namespace: %s, name: "builder:latest"}}}, %s}}`, other, git))
	if out, err := p.TryOC("start-build", "app"); err == nil || !strings.Contains(err.Error(), "the image does not exist") {
		t.Errorf("without the right: %s, %v", out, err)
	}
	p.OC("policy", "add-role-to-user", "system:image-puller", "system:serviceaccount:"+p.Namespace+":builder", "--namespace="+other)
	p.WaitFor("the right to take effect", func(context.Context) error {
		_, err := p.TryOC("start-build", "app")
		return err
	})
	p.waitPhase("app-1", "Complete")
}
