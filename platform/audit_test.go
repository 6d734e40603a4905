package platform

import "testing"

func TestPoliciesOfOpenShift3AreRead(t *testing.T) {
	for given, want := range map[string]string{
		`{"apiVersion":"audit.k8s.io/v1beta1","kind":"Policy","rules":[{"level":"Request"}]}`: `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Request"}]}`,
		`{"apiVersion":"example.com/v1","kind":"Policy"}`:                                     `{"apiVersion":"example.com/v1","kind":"Policy"}`,
	} {
		if got, err := currentPolicy([]byte(given)); err != nil || string(got) != want {
			t.Errorf("policy %s becomes %s, %v", given, got, err)
		}
	}
	if _, err := currentPolicy([]byte(`[]`)); err == nil {
		t.Error("a list is taken for a policy")
	}
}
