package build

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// The annotation whose key is answerPrefix followed by an input's ID contains the answer to the
// input. The annotation whose key is answererPrefix followed by the ID records the user who
// answered.
const answerPrefix, answererPrefix = "pipeline.slipway.io/input-", "pipeline.slipway.io/user-"

// answerer is the value of the annotation that records who answered an input.
type answerer struct {
	User   string   `json:"user"`
	Groups []string `json:"groups,omitempty"`
}

// recordAnswers records the user whose request answers a pipeline's inputs. It discards the
// request's own changes to this record. Otherwise, users could bypass the restriction of an input
// to certain users.
func recordAnswers(ctx context.Context, build, old *buildv1.Build) {
	for name := range build.Annotations {
		if strings.HasPrefix(name, answererPrefix) {
			delete(build.Annotations, name)
		}
	}
	for name, answer := range build.Annotations {
		input, ok := strings.CutPrefix(name, answerPrefix)
		if !ok {
			continue
		}
		by, ok := old.Annotations[answererPrefix+input]
		if before, answered := old.Annotations[name]; !answered || before != answer {
			by, ok = requester(ctx)
		}
		if ok {
			metav1.SetMetaDataAnnotation(&build.ObjectMeta, answererPrefix+input, by)
		}
	}
}

// requester returns the requesting user as JSON, without the built-in groups.
func requester(ctx context.Context) (text string, ok bool) {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return "", false
	}
	groups := slices.DeleteFunc(slices.Clone(user.GetGroups()), func(group string) bool { return strings.HasPrefix(group, "system:") })
	encoded, err := json.Marshal(answerer{user.GetName(), groups})
	return string(encoded), err == nil
}
