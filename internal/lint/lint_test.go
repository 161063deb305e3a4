package lint

import "testing"

// TestTree applies every rule to the repository.
func TestTree(t *testing.T) {
	tree, err := Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range Rules {
		t.Run(rule.Name, func(t *testing.T) {
			for _, f := range rule.Check(tree) {
				t.Error(f)
			}
		})
	}
}
