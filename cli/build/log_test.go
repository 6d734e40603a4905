package build

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// slow is a fake server with a build that cannot be scheduled yet. The first request for its log
// times out. The build starts after the client has written a message to waiting.
type slow struct {
	waiting  bytes.Buffer
	requests int
}

func (s *slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var response any
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/log"):
		if s.requests++; s.requests > 1 {
			_, _ = io.WriteString(w, "built with "+r.URL.RawQuery+"\n")
			return
		}
		timeoutStatus := apierrors.NewTimeoutError("the build has not started", 1).Status()
		w.WriteHeader(int(timeoutStatus.Code))
		response = timeoutStatus
	case strings.HasSuffix(r.URL.Path, "/pods/app-1-build"):
		response = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "app-1-build"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available"}}}}
	default:
		build := &buildv1.Build{ObjectMeta: metav1.ObjectMeta{Name: "app-1"}, Status: buildv1.BuildStatus{Phase: buildv1.BuildPhasePending}}
		if s.waiting.Len() > 0 {
			build.Status.Phase = buildv1.BuildPhaseRunning
		}
		response = build
	}
	_ = json.NewEncoder(w).Encode(response)
}

// serve starts the server and returns its address.
func (s *slow) serve(t *testing.T) (address string) {
	t.Helper()
	if err := Register(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

// waitingMessage is the message that is printed while the server's build is pending.
const waitingMessage = "Waiting for build \"app-1\" (10s): its pod app-1-build is not scheduled: 0/1 nodes are available\n"

func TestFollowedLogPrintsWhyBuildWaits(t *testing.T) {
	slow := &slow{}
	client, err := New(&rest.Config{Host: slow.serve(t)}, "demo")
	if err != nil {
		t.Fatal(err)
	}
	client.clock = &clocktesting.SimpleIntervalClock{Duration: 10 * time.Second}
	var out bytes.Buffer
	if err := client.Follow(t.Context(), "app-1", &out, &slow.waiting); err != nil {
		t.Fatal(err)
	}
	if out.String() != "built with follow=true\n" || slow.waiting.String() != waitingMessage {
		t.Errorf("log %q, and messages while it waited %q", out.String(), slow.waiting.String())
	}
}

func TestOnlyFollowedLogWaits(t *testing.T) {
	slow := &slow{requests: 1}
	address := slow.serve(t)
	getter := genericclioptions.NewConfigFlags(false)
	getter.APIServer = &address
	build := &buildv1.Build{ObjectMeta: metav1.ObjectMeta{Name: "app-1", Namespace: "demo"}}
	for query, options := range map[string]runtime.Object{
		"nowait=true":               &corev1.PodLogOptions{},
		"follow=true&previous=true": &corev1.PodLogOptions{Follow: true, Previous: true},
	} {
		logs, err := Log(0, &slow.waiting, nil)(getter, build, options, 0, false)
		if err != nil || len(logs) != 1 {
			t.Fatal(logs, err)
		}
		for _, log := range logs {
			content, err := log.DoRaw(t.Context())
			if err != nil || string(content) != "built with "+query+"\n" || slow.waiting.Len() > 0 {
				t.Errorf("log %q, %v; messages %q", content, err, slow.waiting.String())
			}
		}
	}
	logs, err := Log(0, &slow.waiting, nil)(getter, build, &corev1.PodLogOptions{Follow: true}, 0, false)
	for _, log := range logs {
		if _, follows := log.(*following); !follows {
			t.Errorf("the followed log is a %T", log)
		}
	}
	if err != nil || len(logs) != 1 {
		t.Error(logs, err)
	}
}
