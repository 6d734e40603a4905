package deployment

import (
	"context"
	"slices"
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	imagev1 "github.com/openshift/api/image/v1"
	appsfake "github.com/openshift/client-go/apps/clientset/versioned/fake"
	appslisters "github.com/openshift/client-go/apps/listers/apps/v1"
	imagelisters "github.com/openshift/client-go/image/listers/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/record"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
)

func TestImageOfOtherProjectRequiresAccess(t *testing.T) {
	for name, tt := range map[string]struct {
		namespace, account string
		updated            bool
	}{
		"own":           {"shop", "nobody", true},
		"may":           {"other", "system:serviceaccount:shop:default", true},
		"other account": {"other", "system:serviceaccount:shop:builder", false},
	} {
		dc := configuration(0)
		dc.Spec.Triggers = appsv1.DeploymentTriggerPolicies{{Type: appsv1.DeploymentTriggerOnImageChange, ImageChangeParams: &appsv1.DeploymentTriggerImageChangeParams{
			Automatic: true, ContainerNames: []string{"main"}, From: corev1.ObjectReference{Kind: "ImageStreamTag", Namespace: tt.namespace, Name: "app:latest"},
		}}}
		stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: tt.namespace, Name: "app"}}
		stream.Status.Tags = []imagev1.NamedTagEventList{{Tag: "latest", Items: []imagev1.TagEvent{{Image: "sha256:1", DockerImageReference: "app@sha256:1"}}}}
		apps, events := appsfake.NewSimpleClientset(dc.DeepCopy()).AppsV1(), record.NewFakeRecorder(10)
		l := &imageChangeController{
			apps, appslisters.NewDeploymentConfigLister(indexer(t, dc)), imagelisters.NewImageStreamLister(indexer(t, stream)),
			func(_ context.Context, account user.Info, _, _, _ string) (bool, error) {
				return account.GetName() == tt.account, nil
			}, events,
		}
		_ = l.reconcile(t.Context(), key(dc.Name)) // reconcile can return a requeue error
		got, err := apps.DeploymentConfigs("shop").Get(t.Context(), dc.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if updated := got.Spec.Template.Spec.Containers[0].Image == "app@sha256:1"; updated != tt.updated {
			t.Errorf("%s: the image is %q", name, got.Spec.Template.Spec.Containers[0].Image)
		}
		reported := slices.ContainsFunc(got.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
			return c.Type == pull.ConditionType && c.Status == corev1.ConditionFalse
		})
		if reported == tt.updated || (len(events.Events) == 1) == tt.updated {
			t.Errorf("%s: conditions %v and %d events", name, got.Status.Conditions, len(events.Events))
		}
	}
}
