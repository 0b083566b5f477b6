package workspace

import "testing"

func TestScriptPath(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`$(dirname "$0")/train.py`, "s/train.py"},
		{`"$(dirname "$0")"/../train.py`, "train.py"},
		{`${0%/*}/train.py`, "s/train.py"},
		{`${BASH_SOURCE[0]%/*}/train.py`, "s/train.py"},
		{`$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/../h/train.py`, "h/train.py"},
		{`$( cd "$( dirname "${BASH_SOURCE[0]}" )" >/dev/null 2>&1 && pwd )/train.py`, "s/train.py"},
		{`$(cd $(dirname $0); pwd -P)/train.py`, "s/train.py"},
		{`$(dirname $(readlink -f $0))/train.py`, "s/train.py"},
		{`$(dirname -- "$(realpath "$0")")/train.py`, "s/train.py"},
		{`$(dirname $(dirname $0))/train.py`, "train.py"},
		{`$DIR/train.py`, ""},
		{`$(dirname "$0")/$NAME.py`, ""},
		{`$(git rev-parse --show-toplevel)/train.py`, ""},
		{`$(cd $HOME && pwd)/train.py`, ""},
		{`$(dirname "$0"`, ""},
		{`train.py`, ""},
		{``, ""},
	} {
		if file, _ := scriptPath(test.text, "s/run.sh", maxNestedPaths); file != test.want {
			t.Errorf("%s is %q, wanted %q", test.text, file, test.want)
		}
	}
}
