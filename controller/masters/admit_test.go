package masters

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/etcdmember"
)

func (f *fakeMembers) AddLearner(_ context.Context, peerURL string) ([]etcdmember.Member, error) {
	f.changes = append(f.changes, "add "+peerURL)
	f.list = append(f.list, etcdmember.Member{ID: 255, PeerURL: peerURL, Learner: true})
	return f.List(context.Background())
}

func TestNewMasterIsAddedOnce(t *testing.T) {
	first := etcdmember.Member{ID: 1, Name: "one", PeerURL: "https://192.0.2.1:2380"}
	silent := etcdmember.Member{ID: 0xabc, PeerURL: "https://192.0.2.9:2380", Learner: true}
	admitted := etcdmember.Member{ID: 2, PeerURL: "https://192.0.2.2:2380", Learner: true}
	for name, tt := range map[string]struct {
		members []etcdmember.Member
		want    string
		added   bool
	}{
		"first request":                   {[]etcdmember.Member{first}, "one=https://192.0.2.1:2380,two=https://192.0.2.2:2380", true},
		"repetition":                      {[]etcdmember.Member{first, admitted}, "one=https://192.0.2.1:2380,two=https://192.0.2.2:2380", false},
		"another learner has not started": {[]etcdmember.Member{silent}, "abc=https://192.0.2.9:2380,two=https://192.0.2.2:2380", true},
		"both joined and have no name":    {[]etcdmember.Member{silent, admitted}, "abc=https://192.0.2.9:2380,two=https://192.0.2.2:2380", false},
	} {
		members := &fakeMembers{list: tt.members}
		got, err := Admit(t.Context(), members, "two", "https://192.0.2.2:2380")
		if err != nil || got != tt.want || len(members.changes) == 1 != tt.added {
			t.Errorf("%s: got %q after %q, error %v", name, got, members.changes, err)
		}
	}
}

func TestMemberOfPreviousHostIsReported(t *testing.T) {
	for name, former := range map[string]etcdmember.Member{
		"same name":    {ID: 2, Name: "two", PeerURL: "https://192.0.2.7:2380"},
		"same address": {ID: 2, Name: "other", PeerURL: "https://192.0.2.2:2380"},
	} {
		members := &fakeMembers{list: []etcdmember.Member{former}}
		_, err := Admit(t.Context(), members, "two", "https://192.0.2.2:2380")
		var exists MemberError
		if !errors.As(err, &exists) || exists.Member != former || !strings.HasSuffix(err.Error(), "oc delete node "+former.Name) {
			t.Errorf("%s: got %v", name, err)
		}
		if len(members.changes) > 0 {
			t.Errorf("%s: %q", name, members.changes)
		}
	}
}

func TestRemovedMasterLeavesNoData(t *testing.T) {
	members := &fakeMembers{list: []etcdmember.Member{voter(1), voter(2)}}
	client := fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: settingsName}, Data: map[string]string{"1": "{}", "2": "{}"},
	})
	for range 2 { // the second call has nothing to remove
		if err := Remove(t.Context(), members, client, "2"); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(members.changes, []string{"remove 2"}) {
		t.Errorf("changes of etcd: %q", members.changes)
	}
	object, err := client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), settingsName, metav1.GetOptions{})
	if err != nil || len(object.Data) != 1 || object.Data["1"] == "" {
		t.Errorf("settings: %v, %v", object.Data, err)
	}
}

func TestOnlyMasterRestartsWhenAnotherJoins(t *testing.T) {
	expanded := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	if err := (Single{expanded}).Run(ctx, cancel); err != nil {
		t.Errorf("after a stop: %v", err)
	}
	close(expanded)
	if err := (Single{expanded}).Run(t.Context(), func() {}); err == nil || !strings.Contains(err.Error(), "one of several") {
		t.Errorf("after a join: %v", err)
	}
}
