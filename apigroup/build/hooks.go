package build

import (
	"context"
	stderrors "errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/slipway-platform/slipway/apigroup/build/webhook"
)

// webHooks is the buildconfigs/webhooks/<secret>/<kind> subresource, which Git hosts call. A caller
// that knows the secret can start a build without authentication. Hosts that sign their calls can
// use buildconfigs/webhooks/<kind>, so that the secret does not appear in proxy logs.
type webHooks struct{ buildStore }

var _ rest.Connecter = &webHooks{}

// New returns an object of the response type, for discovery.
func (*webHooks) New() runtime.Object { return &buildv1.Build{} }

// Destroy implements rest.Storage.
func (*webHooks) Destroy() {}

// NewConnectOptions reports that requests have a subpath and no query options.
func (*webHooks) NewConnectOptions() (runtime.Object, bool, string) { return nil, true, "" }

// ConnectMethods returns the accepted HTTP methods.
func (*webHooks) ConnectMethods() []string { return []string{http.MethodPost} }

// maxCallBytes is the maximum size of a webhook call's body, in bytes.
const maxCallBytes = 4 << 20

// Connect returns a handler that responds with the receipt of the new build. If the handler ignores
// the call, it responds with a Status that contains the reason.
func (h *webHooks) Connect(ctx context.Context, name string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	secret, kind, ok := parsePath(ctx)
	read := webhook.Readers()[kind]
	if !ok || read == nil {
		return nil, apierrors.NewNotFound(buildv1.Resource("buildconfighook"), name)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		build, ignored, err := h.answer(request.WithNamespace(r.Context(), request.NamespaceValue(ctx)), name, secret, kind, read, w, r)
		switch {
		case err != nil:
			responder.Error(err)
		case build == nil:
			responder.Object(http.StatusOK, &metav1.Status{Status: metav1.StatusSuccess, Message: ignored})
		default:
			responder.Object(http.StatusOK, receipt(build))
		}
	}), nil
}

// receipt returns the parts of a new build that a webhook's response contains: the metadata that
// identifies the build, and the revision. The other fields contain environment variables, which a
// caller is not allowed to read, because the webhook secret only permits it to start builds. Git
// hosts also show responses to all administrators of a repository.
func receipt(build *buildv1.Build) *buildv1.Build {
	return &buildv1.Build{
		ObjectMeta: metav1.ObjectMeta{
			Name: build.Name, Namespace: build.Namespace, UID: build.UID, ResourceVersion: build.ResourceVersion, CreationTimestamp: build.CreationTimestamp,
		},
		Spec:   buildv1.BuildSpec{CommonSpec: buildv1.CommonSpec{Revision: build.Spec.Revision}},
		Status: buildv1.BuildStatus{Phase: build.Status.Phase},
	}
}

// parsePath returns the secret and the kind from a request's path. The path is
// buildconfigs/<name>/webhooks/<secret>/<kind> or, if the call is signed,
// buildconfigs/<name>/webhooks/<kind>. For other paths, ok is false.
func parsePath(ctx context.Context) (secret, kind string, ok bool) {
	const withSecret, withoutSecret = 5, 4
	info, ok := request.RequestInfoFrom(ctx)
	switch {
	case ok && len(info.Parts) == withSecret:
		return info.Parts[3], info.Parts[4], true
	case ok && len(info.Parts) == withoutSecret:
		return "", info.Parts[3], true
	}
	return "", "", false
}

func (h *webHooks) answer(ctx context.Context, name, secret, kind string, read webhook.Reader, w http.ResponseWriter, r *http.Request) (build *buildv1.Build, ignored string, err error) {
	unauthorized := apierrors.NewUnauthorized(fmt.Sprintf("the webhook %q for %q did not accept your secret", kind, name))
	var body []byte
	if secret == "" {
		if !webhook.Signed(kind, r.Header) {
			return nil, "", unauthorized
		}
		// Read the body first, so that its size does not disclose whether the configuration exists.
		if body, err = readBody(w, r); err != nil {
			return nil, "", err
		}
	}
	config, err := h.config(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, "", unauthorized // does not disclose whether the configuration exists
	}
	if err != nil {
		return nil, "", err
	}
	hooks, err := h.findHooks(ctx, config, secret, kind)
	if err != nil {
		return nil, "", err
	}
	if len(hooks) == 0 {
		return nil, "", unauthorized
	}
	if secret != "" {
		if body, err = readBody(w, r); err != nil {
			return nil, "", err
		}
	}
	call := webhook.Call{Header: r.Header, Body: body}
	hook := acceptingHook(hooks, kind, call)
	if hook == nil {
		return nil, "", unauthorized
	}
	event, err := read(call, config.Spec.Source.Git)
	if err != nil {
		return nil, "", apierrors.NewBadRequest(err.Error())
	}
	if event.Ignored != "" {
		return nil, event.Ignored, nil
	}
	req := &buildv1.BuildRequest{Revision: event.Revision, TriggeredBy: []buildv1.BuildTriggerCause{cause(kind, event.Revision)}}
	req.Name = name
	switch {
	case hook.AllowEnv:
		req.Env, req.DockerStrategyOptions = event.Env, event.Options
	case len(event.Env) > 0 || event.Options != nil:
		warning.AddWarning(r.Context(), "", "env and dockerStrategyOptions of the call are ignored, because the webhook does not set allowEnv")
	}
	build, err = h.start(ctx, name, req)
	return build, "", err
}

// readBody returns the body of a call.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallBytes))
	if tooLong := (*http.MaxBytesError)(nil); stderrors.As(err, &tooLong) {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body of a webhook can have at most %d bytes", maxCallBytes))
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("read body: %v", err))
	}
	return body, nil
}

// secretHook is a webhook trigger and its secret, which comes either from the configuration or from
// a Secret.
type secretHook struct {
	*buildv1.WebHookTrigger
	secret string
}

// findHooks returns the webhook triggers of the given kind that have a secret. If secret is not
// empty, it returns only triggers with this secret.
func (h *webHooks) findHooks(ctx context.Context, config *buildv1.BuildConfig, secret, kind string) (hooks []secretHook, err error) {
	for i := range config.Spec.Triggers {
		hook, name := webHook(&config.Spec.Triggers[i])
		if hook == nil || name != kind {
			continue
		}
		hookSecret := hook.Secret
		if hook.SecretReference != nil {
			if hookSecret, err = h.secret(ctx, config.Namespace, hook.SecretReference.Name); err != nil {
				return nil, err
			}
		}
		if hookSecret != "" && (secret == "" || webhook.Same(hookSecret, secret)) {
			hooks = append(hooks, secretHook{hook, hookSecret})
		}
	}
	return hooks, nil
}

// acceptingHook returns the first webhook trigger that accepts a call, or nil. A signed call must
// be signed with the trigger's secret.
func acceptingHook(hooks []secretHook, kind string, call webhook.Call) *buildv1.WebHookTrigger {
	signed := webhook.Signed(kind, call.Header)
	for _, hook := range hooks {
		if !signed || webhook.Verified(kind, call, hook.secret) {
			return hook.WebHookTrigger
		}
	}
	return nil
}

// secret returns the webhook secret that a Secret contains, or "" if the Secret does not exist or
// does not contain a webhook secret.
func (h *webHooks) secret(ctx context.Context, namespace, name string) (string, error) {
	core := h.deps.Kube.CoreV1()
	object, err := core.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", apierrors.NewInternalError(fmt.Errorf("read the secret of a webhook"))
	}
	return string(object.Data[buildv1.WebHookSecretKey]), nil
}

// hidden replaces a webhook's secret in builds, because more users can read builds than can read
// the secret.
const hidden = "***"

// concealSecret replaces the secret in the path of a webhook call, even if the call is malformed.
// It keeps only the webhook's kind.
func concealSecret(path string) string {
	config, call, ok := strings.Cut(path, "/webhooks/")
	if !ok || !strings.Contains(config, "/buildconfigs/") || webhook.Readers()[call] != nil {
		return path
	}
	kind := strings.TrimSuffix(call, "/")
	if kind = kind[strings.LastIndex(kind, "/")+1:]; webhook.Readers()[kind] == nil || kind == call {
		return config + "/webhooks/redacted"
	}
	return config + "/webhooks/redacted/" + kind
}

// cause returns the build trigger cause for a webhook call.
func cause(kind string, revision *buildv1.SourceRevision) buildv1.BuildTriggerCause {
	common := buildv1.CommonWebHookCause{Revision: revision, Secret: hidden}
	switch kind {
	case "github":
		return buildv1.BuildTriggerCause{Message: "GitHub WebHook", GitHubWebHook: &buildv1.GitHubWebHookCause{Revision: revision, Secret: hidden}}
	case "gitlab":
		return buildv1.BuildTriggerCause{Message: "GitLab WebHook", GitLabWebHook: &buildv1.GitLabWebHookCause{CommonWebHookCause: common}}
	case "bitbucket":
		return buildv1.BuildTriggerCause{Message: "Bitbucket WebHook", BitbucketWebHook: &buildv1.BitbucketWebHookCause{CommonWebHookCause: common}}
	}
	return buildv1.BuildTriggerCause{Message: "Generic WebHook", GenericWebHook: &buildv1.GenericWebHookCause{Revision: revision, Secret: hidden}}
}
