package retention

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "github.com/openshift/api/apps/v1"
	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	kubeappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// cluster returns a client for a cluster with the given objects.
func cluster(t *testing.T, objects ...runtime.Object) *fake.FakeDynamicClient {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, kubeappsv1.AddToScheme, batchv1.AddToScheme, appsv1.Install, buildv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewSimpleDynamicClient(scheme, objects...)
}

func TestReferencesOfAllKindsAreRead(t *testing.T) {
	template := func(image string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
	}
	pointer := func(image string) *corev1.PodTemplateSpec { value := template(image); return &value }
	build := func(from string) buildv1.CommonSpec {
		return buildv1.CommonSpec{Strategy: buildv1.BuildStrategy{SourceStrategy: &buildv1.SourceBuildStrategy{From: corev1.ObjectReference{Kind: "ImageStreamTag", Name: from + ":latest"}}}}
	}
	client := cluster(t,
		&corev1.Pod{ObjectMeta: dayOld("shop", "x"), Spec: template("pod").Spec},
		&corev1.ReplicationController{ObjectMeta: dayOld("shop", "x"), Spec: corev1.ReplicationControllerSpec{Template: pointer("replicationcontroller")}},
		&kubeappsv1.Deployment{ObjectMeta: dayOld("shop", "x"), Spec: kubeappsv1.DeploymentSpec{Template: template("deployment")}},
		&kubeappsv1.ReplicaSet{ObjectMeta: dayOld("shop", "x"), Spec: kubeappsv1.ReplicaSetSpec{Template: template("replicaset")}},
		&kubeappsv1.DaemonSet{ObjectMeta: dayOld("shop", "x"), Spec: kubeappsv1.DaemonSetSpec{Template: template("daemonset")}},
		&kubeappsv1.StatefulSet{ObjectMeta: dayOld("shop", "x"), Spec: kubeappsv1.StatefulSetSpec{Template: template("statefulset")}},
		&batchv1.Job{ObjectMeta: dayOld("shop", "x"), Spec: batchv1.JobSpec{Template: template("job")}},
		&batchv1.CronJob{ObjectMeta: dayOld("shop", "x"), Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template("cronjob")}}}},
		&appsv1.DeploymentConfig{ObjectMeta: dayOld("shop", "x"), Spec: appsv1.DeploymentConfigSpec{Template: pointer("deploymentconfig")}},
		&buildv1.BuildConfig{ObjectMeta: dayOld("shop", "x"), Spec: buildv1.BuildConfigSpec{CommonSpec: build("buildconfig")}},
		&buildv1.Build{ObjectMeta: dayOld("shop", "x"), Spec: buildv1.BuildSpec{CommonSpec: build("build")}},
	)
	images := imagefake.NewSimpleClientset(
		&imagev1.Image{ObjectMeta: dayOld("", id(1))},
		&imagev1.ImageStream{ObjectMeta: dayOld("shop", "app")}, &imagev1.ImageStream{ObjectMeta: dayOld("bakery", "app")},
	)
	s, err := Rules{Younger: time.Hour}.Read(t.Context(), images.ImageV1(), client, now())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Images) != 1 || len(s.Streams) != 2 {
		t.Errorf("got %d images and %d streams, want 1 and 2", len(s.Images), len(s.Streams))
	}
	want := map[string][]Owner{}
	for _, kind := range []string{
		"pod", "replicationcontroller", "deployment", "replicaset", "daemonset", "statefulset", "job", "cronjob", "deploymentconfig", "buildconfig", "build",
	} {
		want["shop/"+kind+":latest"] = []Owner{{Kind: kind, Namespace: "shop", Name: "x"}}
	}
	if diff := cmp.Diff(want, s.References.Tags); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}

func TestSmallestLimitOfProjectApplies(t *testing.T) {
	limit := func(namespace, name string, kind corev1.LimitType, size string) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: kind, Max: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
			{Type: kind, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1")}},
		}}}
	}
	client := cluster(t,
		limit("shop", "a", imagev1.LimitTypeImage, "2Gi"), limit("shop", "b", imagev1.LimitTypeImage, "1Gi"), limit("shop", "c", imagev1.LimitTypeImage, "3Gi"),
		limit("bakery", "a", corev1.LimitTypePersistentVolumeClaim, "1Gi"),
	)
	for _, tt := range []struct {
		name  string
		rules Rules
		want  map[string]int64
	}{{"images above the limit", Rules{OverSize: true}, map[string]int64{"shop": 1 << 30}}, {"other rules", Rules{}, map[string]int64{}}} {
		s, err := tt.rules.Read(t.Context(), imagefake.NewSimpleClientset().ImageV1(), client, now())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, s.Limits); diff != "" {
			t.Errorf("%s: limits (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestReadFailsIfAnyKindCannotBeListed checks that Read returns an error instead of incomplete
// references, because pruning would remove images that are in use.
func TestReadFailsIfAnyKindCannotBeListed(t *testing.T) {
	refuse := func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(errors.New("refused"))
	}
	for _, plural := range []string{
		"pods", "replicationcontrollers", "deployments", "replicasets", "daemonsets", "statefulsets", "jobs", "cronjobs", "deploymentconfigs", "buildconfigs",
		"builds", "limitranges", "images", "imagestreams",
	} {
		images, client := imagefake.NewSimpleClientset(), cluster(t)
		images.PrependReactor("list", plural, refuse)
		client.PrependReactor("list", plural, refuse)
		if _, err := (Rules{OverSize: true}).Read(t.Context(), images.ImageV1(), client, now()); err == nil {
			t.Errorf("%s: no error", plural)
		}
	}
}
