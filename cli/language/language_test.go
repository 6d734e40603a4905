package language

import "testing"

func TestDictionaryIsReadForOtherLanguagesOnly(t *testing.T) {
	if Late != nil {
		t.Error(Late)
	}
	for _, tt := range []struct {
		all, messages, lang string
		want                bool
	}{
		{"", "", "", true}, {"", "", "C.UTF-8", true}, {"", "", "en_GB.UTF-8", true}, {"", "", "POSIX", true},
		{"", "", "de_DE.UTF-8", false}, {"", "ja_JP.UTF-8", "C", false}, {"en_US.UTF-8", "", "fr_FR.UTF-8", true},
	} {
		environment := map[string]string{"LC_ALL": tt.all, "LC_MESSAGES": tt.messages, "LANG": tt.lang}
		if got := english(func(name string) string { return environment[name] }); got != tt.want {
			t.Errorf("%v: the locale is English: %t, want %t", environment, got, tt.want)
		}
	}
}
