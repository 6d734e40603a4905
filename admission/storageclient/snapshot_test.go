package storageclient

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic/fake"
)

// object returns an object of the snapshot API.
func object(kind, name string, fields map[string]any) *unstructured.Unstructured {
	fields["apiVersion"], fields["kind"] = snapshotVersion.String(), kind
	fields["metadata"] = map[string]any{"name": name}
	return &unstructured.Unstructured{Object: fields}
}

// snapshots returns a plugin for a cluster with the VolumeSnapshotClasses and
// VolumeSnapshotContents of two drivers.
func snapshots() *plugin {
	p := limited(claim("local", "local-volume", func(c *corev1.PersistentVolumeClaim) { c.Name = "local-claim" }), claim("nfs", "nfs-volume", func(c *corev1.PersistentVolumeClaim) { c.Name = "nfs-claim" }))
	kinds := map[schema.GroupVersionResource]string{
		snapshotVersion.WithResource("volumesnapshotclasses"): "VolumeSnapshotClassList", snapshotVersion.WithResource("volumesnapshotcontents"): "VolumeSnapshotContentList",
	}
	var objects []runtime.Object
	for name, owner := range map[string]string{"local": driver, "nfs": "nfs.example.com"} {
		objects = append(objects, object("VolumeSnapshotClass", name, map[string]any{"driver": owner}),
			object("VolumeSnapshotContent", "snapcontent-"+name, map[string]any{"spec": map[string]any{"driver": owner}}))
	}
	p.SetDynamicClient(fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...))
	return p
}

// snapshot returns a snapshot with the given UID, class, and source field and value. The name of
// the snapshot's VolumeSnapshotContent is derived from the UID.
func snapshot(uid, class, field, source string) *unstructured.Unstructured {
	spec := map[string]any{"source": map[string]any{field: source}}
	if class != "" {
		spec["volumeSnapshotClassName"] = class
	}
	s := object("VolumeSnapshot", "name", map[string]any{"spec": spec})
	s.SetNamespace("shop")
	s.SetUID(types.UID(uid))
	s.SetFinalizers([]string{"example.com/backup", ownFinalizer})
	return s
}

func setClass(name string) func(*unstructured.Unstructured) {
	return func(s *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(s.Object, name, "spec", "volumeSnapshotClassName")
	}
}

func TestClientCanOnlyChangeSnapshotsOfItsDriver(t *testing.T) {
	const claimName, contentName = "persistentVolumeClaimName", "volumeSnapshotContentName"
	release := func(s *unstructured.Unstructured) { s.SetFinalizers(s.GetFinalizers()[:1]) }
	report := func(s *unstructured.Unstructured) { s.Object["status"] = map[string]any{"readyToUse": false} }
	deleted := func(s *unstructured.Unstructured) *unstructured.Unstructured {
		now := metav1.Now()
		s.SetDeletionTimestamp(&now)
		return s
	}
	const foreign, none = `"nfs.example.com" is not the driver`, `"" is not the driver`
	for name, tt := range map[string]struct {
		before *unstructured.Unstructured
		change func(*unstructured.Unstructured)
		want   string
	}{
		"class of the driver":                                        {snapshot("a", "local", claimName, "missing"), release, ""},
		"content of the driver":                                      {snapshot("local", "", claimName, "missing"), release, ""},
		"content of the driver, deleted class":                       {snapshot("local", "gone", claimName, "missing"), release, ""},
		"content of the driver by name":                              {snapshot("a", "", contentName, "snapcontent-local"), release, ""},
		"volume of the driver":                                       {snapshot("a", "", claimName, "local-claim"), release, ""},
		"class of another driver":                                    {snapshot("a", "nfs", claimName, "local-claim"), release, foreign},
		"class of another driver, content that the client created":   {snapshot("local", "nfs", claimName, "missing"), release, foreign},
		"content of another driver":                                  {snapshot("nfs", "", claimName, "local-claim"), release, foreign},
		"content of another driver by name":                          {snapshot("a", "local", contentName, "snapcontent-nfs"), release, foreign},
		"volume of another driver":                                   {snapshot("a", "", claimName, "nfs-claim"), release, foreign},
		"deleted snapshot of another driver":                         {deleted(snapshot("nfs", "nfs", claimName, "nfs-claim")), release, foreign},
		"content of the driver, deleted after its class was changed": {deleted(snapshot("local", "nfs", claimName, "missing")), release, ""},

		"no driver":                   {snapshot("a", "", claimName, "missing"), release, none},
		"no driver, status":           {snapshot("a", "", claimName, "missing"), report, ""},
		"no driver, deleted snapshot": {deleted(snapshot("a", "gone", claimName, "nfs-claim")), release, ""},
		"another driver, status":      {snapshot("a", "nfs", claimName, "missing"), report, foreign},
		"missing content, status":     {snapshot("a", "nfs", contentName, "missing"), report, ""},

		"sets its class":     {snapshot("a", "", claimName, "local-claim"), setClass("local"), ""},
		"sets another class": {snapshot("a", "", claimName, "local-claim"), setClass("nfs"), "spec.volumeSnapshotClassName"},
		"changes the class":  {snapshot("a", "other", claimName, "local-claim"), setClass("local"), "must not change the spec"},
		"sets the class of a snapshot of a missing claim": {snapshot("a", "", claimName, "missing"), setClass("local"), none},
		"changes the source": {snapshot("a", "local", claimName, "local-claim"), func(s *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(s.Object, "another", "spec", "source", claimName)
		}, "must not change the spec"},
		"adds an owner that does not exist": {snapshot("a", "local", claimName, "local-claim"), func(s *unstructured.Unstructured) {
			s.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "missing", UID: "1"}})
		}, "metadata.ownerReferences"},
		"removes a finalizer of others": {snapshot("a", "local", claimName, "local-claim"), func(s *unstructured.Unstructured) { s.SetFinalizers(nil) }, "metadata.finalizers"},
		"changes a label": {snapshot("a", "local", claimName, "local-claim"), func(s *unstructured.Unstructured) {
			s.SetLabels(map[string]string{"app": "back"})
		}, "metadata.labels"},
		"changes an annotation": {snapshot("a", "local", claimName, "local-claim"), func(s *unstructured.Unstructured) {
			s.SetAnnotations(map[string]string{ownAnnotation: "second"})
		}, "metadata.annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			after := tt.before.DeepCopy()
			tt.change(after)
			expect(t, snapshots().Validate(t.Context(), attributes(group, "volumesnapshots", admission.Update, tt.before, after), nil), tt.want)
		})
	}
	expect(t, snapshots().Validate(t.Context(), attributes(group, "volumesnapshots", admission.Create, nil, snapshot("a", "local", claimName, "local-claim")), nil), "can only update snapshots")
}
