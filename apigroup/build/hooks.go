package build

import (
	"context"
	stderrors "errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/slipway-platform/slipway/apigroup/build/webhook"
)

// webHooks is the subresource buildconfigs/webhooks/<secret>/<kind>, which hosts of Git repositories call. Whoever knows the secret starts a build: no
// user is asked for. Hosts that sign what they send need not have the secret in the address, which the logs of proxies have too: buildconfigs/webhooks/<kind>.
type webHooks struct{ starter }

var _ rest.Connecter = &webHooks{}

// New makes what discovery calls the answer.
func (*webHooks) New() runtime.Object { return &buildv1.Build{} }

// Destroy has nothing to give back.
func (*webHooks) Destroy() {}

// NewConnectOptions says that the path goes on, and that there is no query.
func (*webHooks) NewConnectOptions() (runtime.Object, bool, string) { return nil, true, "" }

// ConnectMethods are the methods of HTTP that it answers.
func (*webHooks) ConnectMethods() []string { return []string{http.MethodPost} }

// maxCall is how long the body of a call may be, in bytes.
const maxCall = 4 << 20

// Connect makes what answers a call: the build that it started, or nothing where none follows.
func (h *webHooks) Connect(ctx context.Context, name string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	secret, kind, ok := addressed(ctx)
	read := webhook.Readers()[kind]
	if !ok || read == nil {
		return nil, errors.NewNotFound(buildv1.Resource("buildconfighook"), name)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		build, ignored, err := h.answer(request.WithNamespace(r.Context(), request.NamespaceValue(ctx)), name, secret, kind, read, w, r)
		switch {
		case err != nil:
			responder.Error(err)
		case build == nil:
			responder.Object(http.StatusOK, &metav1.Status{Status: metav1.StatusSuccess, Message: ignored})
		default:
			responder.Object(http.StatusOK, build)
		}
	}), nil
}

// addressed are the secret and the kind in the address of a request: buildconfigs/<name>/webhooks/<secret>/<kind>, or without a secret, which the call then
// must prove to know: buildconfigs/<name>/webhooks/<kind>.
func addressed(ctx context.Context) (secret, kind string, ok bool) {
	const known, unknown = 5, 4
	asked, found := request.RequestInfoFrom(ctx)
	switch {
	case found && len(asked.Parts) == known:
		return asked.Parts[3], asked.Parts[4], true
	case found && len(asked.Parts) == unknown:
		return "", asked.Parts[3], true
	}
	return "", "", false
}

func (h *webHooks) answer(ctx context.Context, name, secret, kind string, read webhook.Reader, w http.ResponseWriter, r *http.Request) (build *buildv1.Build, ignored string, err error) {
	refused := errors.NewUnauthorized(fmt.Sprintf("the webhook %q for %q did not accept your secret", kind, name))
	config, err := h.config(ctx, name)
	if errors.IsNotFound(err) {
		return nil, "", refused // whoever knows no secret does not learn what is there
	}
	if err != nil {
		return nil, "", err
	}
	hooks, err := h.addressees(ctx, config, secret, kind)
	if err != nil {
		return nil, "", err
	}
	if len(hooks) == 0 || secret == "" && !webhook.Signed(kind, r.Header) {
		return nil, "", refused
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCall))
	if tooLong := (*http.MaxBytesError)(nil); stderrors.As(err, &tooLong) {
		return nil, "", errors.NewRequestEntityTooLargeError(fmt.Sprintf("the body of a webhook may have %d bytes", maxCall))
	}
	if err != nil {
		return nil, "", errors.NewBadRequest(fmt.Sprintf("read body: %v", err))
	}
	call := webhook.Call{Header: r.Header, Body: body}
	hook := accepting(hooks, kind, call)
	if hook == nil {
		return nil, "", refused
	}
	event, err := read(call, config.Spec.Source.Git)
	if err != nil {
		return nil, "", errors.NewBadRequest(err.Error())
	}
	if event.Ignored != "" {
		return nil, event.Ignored, nil
	}
	asked := &buildv1.BuildRequest{Revision: event.Revision, TriggeredBy: []buildv1.BuildTriggerCause{cause(kind, event.Revision)}}
	asked.Name = name
	switch {
	case hook.AllowEnv:
		asked.Env, asked.DockerStrategyOptions = event.Env, event.Options
	case len(event.Env) > 0 || event.Options != nil:
		warning.AddWarning(r.Context(), "", "env and dockerStrategyOptions of the call are ignored, since the webhook does not say allowEnv")
	}
	build, err = h.start(ctx, name, asked)
	return build, "", err
}

// guarded is a hook with its secret, wherever that stands.
type guarded struct {
	*buildv1.WebHookTrigger
	secret string
}

// addressees are the hooks of a kind that have the secret of an address, or all that have one where the address has none.
func (h *webHooks) addressees(ctx context.Context, config *buildv1.BuildConfig, secret, kind string) (hooks []guarded, err error) {
	for i := range config.Spec.Triggers {
		hook, name := webHook(&config.Spec.Triggers[i])
		if hook == nil || name != kind {
			continue
		}
		known := hook.Secret
		if hook.SecretReference != nil {
			if known, err = h.secret(ctx, config.Namespace, hook.SecretReference.Name); err != nil {
				return nil, err
			}
		}
		if known != "" && (secret == "" || webhook.Same(known, secret)) {
			hooks = append(hooks, guarded{hook, known})
		}
	}
	return hooks, nil
}

// accepting is the first of the hooks that a call is for, nil if there is none: a call that is signed must be signed with the hook's secret.
func accepting(hooks []guarded, kind string, call webhook.Call) *buildv1.WebHookTrigger {
	signed := webhook.Signed(kind, call.Header)
	for _, hook := range hooks {
		if !signed || webhook.Proven(kind, call, hook.secret) {
			return hook.WebHookTrigger
		}
	}
	return nil
}

// secret is the one that a Secret has for web hooks, empty if there is none.
func (h *webHooks) secret(ctx context.Context, namespace, name string) (string, error) {
	core, err := coreclient.NewForConfig(h.deps.Loopback)
	if err != nil {
		return "", err
	}
	found, err := core.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", errors.NewInternalError(fmt.Errorf("read the secret of a webhook"))
	}
	return string(found.Data[buildv1.WebHookSecretKey]), nil
}

// hidden is what builds show of a hook's secret.
const hidden = "***"

// concealSecret takes the secret out of the path of a call.
func concealSecret(path string) string {
	config, call, ok := strings.Cut(path, "/webhooks/")
	_, kind, hasSecret := strings.Cut(call, "/")
	if !ok || !hasSecret || !strings.Contains(config, "/buildconfigs/") {
		return path
	}
	return config + "/webhooks/redacted/" + kind
}

// cause says which hook has started a build.
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
