package s3

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// FuzzSettings verifies that accepted settings are within the S3 limits, and that no error contains
// a secret.
func FuzzSettings(f *testing.F) {
	for _, seed := range []string{
		"{bucket: b, region: eu-west-1}", "{bucket: b, regionendpoint: 'https://s3.example.com', accesskey: a, secretkey: hidden-treasure}",
		"{bucket: b, region: nowhere, secretkey: hidden-treasure}", "{chunksize: 1}", "{chunksize: 99999999999999999999}", "{unknown: [x]}", "{loglevel: off}", "{bucket: null}",
		"{redirectendpoint: 'ftp://x/y?z'}", "{encrypt: {a: b}}", "{forcepathstyle: 2}", "{multipartcopythresholdsize: -1}", "[]", "{regionendpoint: '%zz://'}",
	} {
		f.Add(seed, "hidden-treasure")
	}
	f.Fuzz(func(t *testing.T, text, secret string) {
		var parameters map[string]any
		if err := yaml.Unmarshal([]byte(text), &parameters); err != nil || parameters == nil {
			return
		}
		if _, ok := parameters["secretkey"]; ok {
			parameters["secretkey"] = secret
		}
		s, err := read(parameters)
		const obvious = 12 // a shorter secret can occur in any message by chance
		if err != nil {
			if len(secret) >= obvious && !strings.Contains(text, secret) && strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the secret: %v", err)
			}
			return
		}
		if s.bucket == "" || s.part < minPart || s.part > maxPart || s.copyPart < minPart || s.copyPart > maxPart || s.copies < 1 || s.copies > maxCopies {
			t.Errorf("%s: accepted %+v", text, s)
		}
		if (s.accessKey == "") != (s.secretKey == "") || s.redirect != "" && !bare(s.redirect) {
			t.Errorf("%s: accepted settings that do not fit together", text)
		}
	})
}
