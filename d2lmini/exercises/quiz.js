// Makes every quiz on the page that is not yet alive answer: no library, no network, nothing global.
(() => {
  const number = text => Number(text.replace(/[\s,_]/g, "") || NaN);

  const verdict = (fieldset, picked) => {
    const needed = Number(fieldset.dataset.right);
    const hits = picked.filter(p => p.dataset.correct === "true").length;
    if (hits === needed && picked.length === hits) return "Right.";
    if (hits < picked.length) return needed > 1 && hits ? "Not all of these." : "Not this one.";
    return needed - hits === 1 ? "So far right; one more is." : `So far right; ${needed - hits} more are.`;
  };

  const answerChoice = (fieldset, reply) => {
    const inputs = [...fieldset.querySelectorAll("input")];
    const picked = inputs.filter(i => i.checked);
    if (!picked.length) return say(reply, "Choose an answer first.", []);
    const reasons = fieldset.querySelectorAll("details li");
    say(reply, verdict(fieldset, picked), inputs.flatMap((input, i) => input.checked ? [reasons[i]] : []));
  };

  const answerNumber = (fieldset, reply) => {
    const value = number(fieldset.querySelector("input").value);
    if (Number.isNaN(value)) return say(reply, "Type a number first.", []);
    const reasons = [...fieldset.querySelectorAll("details li")];
    const known = reasons.find(r => r.dataset.value !== undefined && Number(r.dataset.value) === value);
    const reason = known || reasons.find(r => r.dataset.value === undefined);
    say(reply, known && known.dataset.correct === "true" ? "Right." : "Not this number.", reason ? [reason] : []);
  };

  const say = (reply, text, reasons) => {
    reply.dataset.state = text === "Right." ? "right" : reasons.length ? "wrong" : "";
    const lead = document.createElement("strong");
    lead.textContent = text;
    reply.replaceChildren(lead);
    for (const reason of reasons) {
      const line = document.createElement("p");
      line.append(...reason.cloneNode(true).childNodes);
      reply.append(line);
    }
  };

  for (const quiz of document.querySelectorAll(".d2l-quiz:not([data-alive])")) {
    quiz.dataset.alive = "";
    const own = Math.random().toString(36).slice(2);  // two copies of one quiz must not share their radio buttons
    for (const form of quiz.querySelectorAll("form")) {
      const fieldset = form.querySelector("fieldset");
      const reply = form.querySelector("[role=status]");
      for (const input of form.querySelectorAll("input")) input.name += own;
      form.querySelector("button").hidden = false;
      form.addEventListener("submit", event => {
        event.preventDefault();
        (fieldset.dataset.kind === "numeric" ? answerNumber : answerChoice)(fieldset, reply);
      });
    }
  }
})();
