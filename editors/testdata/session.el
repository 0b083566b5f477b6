;; A session in Emacs: the mistake in model.py is shown by Flymake.  -*- lexical-binding: t -*-
;; Whoever starts it ends it where it hangs; until then it waits for what has to come.
(setq eglot-autoshutdown t eglot-sync-connect t eglot-connect-timeout nil python-indent-guess-indent-offset nil)
(find-file "model.py")
(python-mode)
(call-interactively #'eglot)
(let ((found nil))
  (while (null found)
    (accept-process-output nil 0.05)
    (flymake-start)
    (setq found (flymake-diagnostics)))
  (dolist (one found)
    (message "%d %s" (line-number-at-pos (flymake-diagnostic-beg one)) (flymake-diagnostic-text one))))
(eglot-shutdown (eglot-current-server) nil 3600)
