package build

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Hook calls a build config's generic webhook, as a Git hook does.
type Hook struct {
	// URL is the webhook's URL.
	URL string
	// PostReceive is the path of a file with "<old> <new> <ref>" lines, as git passes them to
	// post-receive hooks. "-" means standard input. Repository is the repository that contains the
	// commits. It defaults to the current directory.
	PostReceive, Repository string
	// Env contains environment variables for the build. The server ignores them unless the
	// webhook's allowEnv field is true.
	Env []corev1.EnvVar
	// Server is the current API server, or nil. Hook uses this server's CA to call webhooks on this
	// server.
	Server *rest.Config
}

// client returns an HTTP client without credentials. The client trusts the server's CA if the
// webhook is on this server.
func (h *Hook) client() (*http.Client, error) {
	hook, err := url.Parse(h.URL)
	if err != nil || h.Server == nil {
		return http.DefaultClient, err
	}
	if server, err := url.Parse(h.Server.Host); err != nil || server.Host != hook.Host {
		return http.DefaultClient, nil
	}
	return rest.HTTPClientFor(rest.AnonymousClientConfig(h.Server))
}

// Call calls the webhook. It returns the build that the server started, or nil if the response does
// not contain a build.
func (h *Hook) Call(ctx context.Context, in io.Reader) (*buildv1.Build, error) {
	event := &buildv1.GenericWebHookEvent{Env: h.Env}
	if h.PostReceive != "" {
		refs, err := h.refs(ctx, in)
		if err != nil {
			return nil, err
		}
		event.Type, event.Git = buildv1.BuildSourceGit, &buildv1.GitInfo{Refs: refs}
	}
	body, err := json.Marshal(event)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	client, err := h.client()
	if err != nil {
		return nil, fmt.Errorf("call webhook: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("call webhook: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	// If reading fails, output contains the beginning of the response, which is sufficient for the
	// message.
	output, _ := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("server rejected our request %d: %s", response.StatusCode, output)
	}
	build := &buildv1.Build{}
	if json.Unmarshal(output, build) != nil || build.Kind != "Build" {
		return nil, nil
	}
	return build, nil
}

// maxResponse is the maximum number of bytes that Call reads from a response. It ignores the rest.
const maxResponse = 1 << 20

// refs parses the input of a post-receive hook. It skips deleted refs.
func (h *Hook) refs(ctx context.Context, in io.Reader) (refs []buildv1.GitRefInfo, err error) {
	if h.PostReceive != "-" {
		file, err := os.Open(h.PostReceive)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) != 3 {
			return nil, fmt.Errorf("parse refs from git: %q must be <old> <new> <ref>", lines.Text())
		}
		if strings.Trim(words[1], "0") == "" { // the ref was deleted
			continue
		}
		refs = append(refs, buildv1.GitRefInfo{
			GitBuildSource:    buildv1.GitBuildSource{Ref: words[2]},
			GitSourceRevision: buildv1.GitSourceRevision{Commit: words[1], Message: h.subject(ctx, words[1])},
		})
	}
	return refs, lines.Err()
}

// subject returns the first line of a commit message, or "" if git cannot read the commit.
func (h *Hook) subject(ctx context.Context, commit string) string {
	repository := h.Repository
	if repository == "" {
		repository = "."
	}
	text, err := exec.CommandContext(ctx, "git", "-C", repository, "log", "-1", "--format=%s", "--end-of-options", commit, "--").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// ListHooks prints a build config's webhook URLs of one type. If of is "all", it prints all URLs,
// each preceded by its type. As in OpenShift 3.11, the URLs contain the placeholder <secret>
// instead of the secret.
func (c *Client) ListHooks(ctx context.Context, config, of string, out io.Writer) error {
	bc, err := c.BuildConfigs(c.Namespace).Get(ctx, config, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, trigger := range bc.Spec.Triggers {
		hook, name := trigger.GenericWebHook, "generic"
		switch trigger.Type {
		case buildv1.GenericWebHookBuildTriggerType:
		case buildv1.GitHubWebHookBuildTriggerType:
			hook, name = trigger.GitHubWebHook, "github"
		case buildv1.GitLabWebHookBuildTriggerType:
			hook, name = trigger.GitLabWebHook, "gitlab"
		case buildv1.BitbucketWebHookBuildTriggerType:
			hook, name = trigger.BitbucketWebHook, "bitbucket"
		default:
			continue
		}
		if hook == nil || of != "all" && of != name {
			continue
		}
		address := c.RESTClient().Post().Namespace(c.Namespace).Resource("buildconfigs").Name(config).SubResource("webhooks").Suffix("<secret>", name).URL()
		prefix := ""
		if of == "all" {
			prefix = name + " "
		}
		fmt.Fprintf(out, "%s%s\n", prefix, strings.ReplaceAll(address.String(), "%3Csecret%3E", "<secret>"))
	}
	return nil
}
