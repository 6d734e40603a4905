package manifest

import "testing"

// FuzzConvert checks that conversion is idempotent.
func FuzzConvert(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: Route\nmetadata: {name: a}\n", "apiVersion: extensions/v1beta1\nkind: Deployment\nspec: null\n", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [1]}]\n",
		"---\n---\n", "apiVersion: batch/v1beta1\nkind: CronJob\nspec: []\n", "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nspec: {scaleTargetRef: {apiVersion: v1, kind: DeploymentConfig}}\n",
		"apiVersion: extensions/v1beta1\nkind: Ingress\nspec: {rules: [{http: {paths: [{backend: {servicePort: {}}}]}}]}\n", "{\"apiVersion\":\"v1\"", "a: &a [*a]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		converted, changes := Convert(text)
		for _, change := range changes {
			_ = change.String()
		}
		if _, second := Convert(converted); len(changes) > 0 && len(second) > 0 {
			t.Errorf("%q becomes %q, and that changes again: %v", text, converted, second)
		}
	})
}
